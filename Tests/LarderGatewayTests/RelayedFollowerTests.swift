import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

@testable import LarderHTTP
@testable import LarderServer

/// What others ask the origin for is waited for without a task, and no one sees a difference: a `Pragma` that says
/// nothing makes the same request wait the long way.
struct RelayedFollowerTests {
    private static let pragma = HTTPField.Name("Pragma")!
    /// Who waited without a task sees that this is stored, and asks whether it is still valid: it is not `uri-miss`.
    private static let validated = "validated"
    private static func fresh(_ text: String) -> OriginAnswer { .ok(text).header("Cache-Control", "max-age=3600") }

    /// What the origin answers to the request that the others wait for.
    private static let answers: [String: OriginAnswer] = [
        "plain": fresh("stored").header("X-Fields", "one").header("X-Fields", "two").header("ETag", "\"a\""),
        "empty": fresh(""),
        "chunks": fresh("first").then("second").chunked(),
        "close": fresh("until the end").untilClose(),
        "long": fresh(String(repeating: "l", count: 300_000)),
        "missing": OriginAnswer.status(404, "none").header("Cache-Control", "max-age=60"),
        "fields": fresh("fields").header("Connection", "X-Hop").header("X-Hop", "h").header("Age", "7")
            .header("Via", "1.1 origin"),
        "aged": fresh("aged").header("Date", "Sat, 01 Jan 2000 00:00:00 GMT"),
        "variant": fresh("variant").header("Vary", "Accept"),
        "heuristic": OriginAnswer.ok("heuristic").header("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT"),
        validated: OriginAnswer.ok("validated").header("Cache-Control", "no-cache").header("ETag", "\"v\""),
        "queries": fresh("queries").header("No-Vary-Search", "params=(\"u\")"),
        "groups": fresh("groups").header("Cache-Groups", "\"g\""),
        "failing": OriginAnswer.status(500, "failed"),
        "never": fresh("never").header("Vary", "*"),
        "refused": OriginAnswer.ok("not stored").header("Cache-Control", "no-store"),
    ]

    /// An origin that answers the first request for `/held` when the gate opens, and others at once.
    private static func responder(_ answer: OriginAnswer, _ gate: Gate) -> TestOrigin.Responder {
        let count = Counter()
        return { request in
            guard request.path == "/held" else { return fresh(request.path) }
            let number = count.increment()
            if number == 1 { try? await gate.wait() }
            return number == 1 ? answer : fresh("own").header("X-Fields", "own")
        }
    }

    /// Waits until others wait for the answer to the first request, as often as that.
    private func waitForFollowers(_ count: Int, _ setting: Setting, _ scheme: String = "http") async throws {
        let key = scheme + "://example.org/held"
        let generation = setting.cache.changes.generations.current(key)
        try await waitWhile {
            (setting.cache.loader.joinable.leading(key, generation: generation)?.waiterCount ?? 0) != count
        }
    }

    /// Runs `body` with clients of which the first has asked, and is at the origin.
    private func held(
        _ answer: OriginAnswer = fresh("held"), clients count: Int,
        _ body: (Setting, TestOrigin, [RawClient], Gate) async throws -> Void
    ) async throws {
        let gate = Gate()
        try await withOrigin(Self.responder(answer, gate)) { setting, origin in
            var clients: [RawClient] = []
            for _ in 0..<count { clients.append(try await setting.connect()) }
            _ = try await clients[0].exchange(get("/begin"))
            try await clients[0].send(get("/held", "Accept: a/b"))
            await gate.arrival()
            try await waitWhile { setting.cache.relayedCount < 1 }
            try await body(setting, origin, clients, gate)
            gate.open()
            for client in clients { try? await client.close() }
        }
    }

    private func hasNoTask(_ setting: Setting) -> Bool {
        setting.gateway.server.workers.allSatisfy { $0.core.tasks.isEmpty }
    }

    @Test(arguments: answers.keys.sorted()) func answersAreThoseOfTheLongWay(_ name: String) async throws {
        try await held(Self.answers[name]!, clients: 3) { setting, origin, clients, gate in
            try await clients[1].send(get("/held", "Accept: a/b"))
            try await waitForFollowers(1, setting)
            try await waitWhile { !hasNoTask(setting) }
            try await clients[2].send(get("/held", "Accept: a/b", "Pragma: nothing"))
            try await waitForFollowers(2, setting)
            #expect(!hasNoTask(setting))
            gate.open()
            _ = try await clients[0].response()
            let (short, long) = (try await clients[1].response(), try await clients[2].response())
            #expect(short.statusLine == long.statusLine)
            func lines(_ response: RawResponse) -> [String] {
                response.fields
                    .filter { $0.name != "Date" && (name != Self.validated || $0.name != "Cache-Status") }
                    .map { "\($0.name): \($0.value.replacing(/ttl=[0-9]+/, with: "ttl"))" }.sorted()
            }
            #expect(lines(short) == lines(long))
            #expect(short.body == long.body)
            #expect(short.text != "own" || origin.requests(for: "/held").count == 3)
        }
    }

    @Test func answersAreThoseOfTheLongWayOverHTTP2() async throws {
        for name in Self.answers.keys.sorted() {
            let gate = Gate()
            let origin = try await TestOrigin.start(Self.responder(Self.answers[name]!, gate))
            let transport = NIOTransport.patient
            try await withTLS(transport, { $0.routes.otherwise = try OriginServer(origin.url) }) { setting, port in
                let client = try await HTTP2Client.connect(to: port)
                _ = try await client.get("/begin")
                async let first = client.get("/held", [.accept: "a/b"])
                await gate.arrival()
                try await waitWhile { setting.cache.relayedCount < 1 }
                async let second = client.get("/held", [.accept: "a/b"])
                try await waitForFollowers(1, setting, "https")
                try await waitWhile { !hasNoTask(setting) }
                async let third = client.get("/held", [.accept: "a/b", Self.pragma: "nothing"])
                try await waitForFollowers(2, setting, "https")
                gate.open()
                let (_, short, long) = try await (first, second, third)
                #expect(short.head.status == long.head.status)
                func fields(_ response: HTTP2Client.Response) -> HTTPFields {
                    var fields = response.head.headerFields
                    fields[.date] = nil
                    fields[.cacheStatus] = fields[.cacheStatus]?.replacing(/ttl=[0-9]+/, with: "ttl")
                    if name == Self.validated { fields[.cacheStatus] = nil }
                    return fields
                }
                #expect(fields(short) == fields(long), Comment(rawValue: name))
                #expect(short.body == long.body)
                await client.close()
            }
            await transport.close()
            await origin.stop()
        }
    }

    /// The one that is at the origin may be on another event loop.
    @Test func followersMayBeOnAnotherEventLoop() async throws {
        let gate = Gate()
        let origin = try await TestOrigin.start(Self.responder(Self.fresh("held"), gate))
        let transport = NIOTransport.patient
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
            $0.eventLoops = 2
        } _: { setting in
            var clients: [RawClient] = []
            for _ in 0..<6 { clients.append(try await setting.connect()) }
            _ = try await clients[0].exchange(get("/begin"))
            try await clients[0].send(get("/held"))
            await gate.arrival()
            try await waitWhile { setting.cache.relayedCount < 1 }
            for client in clients[1...] { try await client.send(get("/held")) }
            try await waitForFollowers(5, setting)
            gate.open()
            for client in clients {
                try await #expect(client.response().text == "held")
                try await client.close()
            }
            #expect(origin.requests(for: "/held").count == 1)
        }
        await transport.close()
        await origin.stop()
    }

    /// A response for other requests goes to those only.
    @Test func aResponseForOtherFieldsIsNotShared() async throws {
        try await held(Self.answers["variant"]!, clients: 3) { setting, origin, clients, gate in
            try await clients[1].send(get("/held", "Accept: c/d"))
            try await clients[2].send(get("/held", "Accept: a/b"))
            try await waitForFollowers(2, setting)
            gate.open()
            let texts = ["variant", "own", "variant"]
            for (client, text) in zip(clients, texts) { try await #expect(client.response().text == text) }
            #expect(origin.requests(for: "/held").count == 2)
        }
    }

    /// One that leaves is no longer waited for, and leaves the others alone.
    @Test func aFollowerMayLeave() async throws {
        try await held(clients: 3) { setting, origin, clients, gate in
            for client in clients[1...] { try await client.send(get("/held")) }
            try await waitForFollowers(2, setting)
            // So late that the client does not only end its side.
            setting.time.advance(seconds: 2)
            try await clients[2].close()
            try await waitForFollowers(1, setting)
            gate.open()
            for client in clients[..<2] { try await #expect(client.response().text == "held") }
            #expect(origin.requests(for: "/held").count == 1)
        }
    }

    /// A connection that a client keeps for more requests serves those, too.
    @Test func moreRequestsMayFollow() async throws {
        try await held(clients: 2) { setting, origin, clients, gate in
            try await clients[1].send(get("/held") + get("/held") + get("/after"))
            try await waitForFollowers(1, setting)
            gate.open()
            for text in ["held", "held", "/after"] { try await #expect(clients[1].response().text == text) }
            try await #expect(clients[0].response().text == "held")
            #expect(origin.requests(for: "/held").count == 1)
        }
    }

    /// What is invalidated meanwhile is not shared with requests that come later.
    @Test func aRequestAfterAnInvalidationDoesNotFollow() async throws {
        try await held(clients: 3) { setting, origin, clients, gate in
            try await clients[1].send(get("/held"))
            try await waitForFollowers(1, setting)
            _ = try await clients[2].exchange(get("/held", "Content-Length: 0", method: "POST"))
            try await #expect(clients[2].exchange(get("/held")).text == "own")
            gate.open()
            for client in clients[..<2] { _ = try await client.response() }
            try await #expect(clients[2].exchange(get("/held")).text == "own")
        }
    }
}
