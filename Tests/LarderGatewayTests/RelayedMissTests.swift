import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

@testable import LarderHTTP

/// What nothing is stored of is asked for and stored without a load, and no one sees a difference: a `Pragma` that says
/// nothing sends the same request the long way.
struct RelayedMissTests {
    private static let pragma = HTTPField.Name("Pragma")!
    private static let noStore = OriginAnswer.ok("not stored").header("Cache-Control", "no-store")
    private static func fresh(_ text: String) -> OriginAnswer {
        .ok(text).header("Cache-Control", "max-age=3600")
    }

    /// What an origin answers, by path without query.
    private static let answers: [String: OriginAnswer] = [
        "/plain": fresh("stored").header("X-Fields", "one").header("X-Fields", "two").header("ETag", "\"a\""),
        "/empty": fresh(""),
        "/chunks": fresh("first").then("second").chunked(),
        "/close": fresh("until the end").untilClose(),
        "/long": fresh(String(repeating: "l", count: 300_000)),
        "/missing": OriginAnswer.status(404, "none").header("Cache-Control", "max-age=60"),
        "/failing": OriginAnswer.status(500, "failed"),
        "/fields": fresh("fields").header("Connection", "X-Hop").header("X-Hop", "h").header("Age", "7")
            .header("Via", "1.1 origin").header("Date", "Sat, 01 Jan 2000 00:00:00 GMT"),
        "/variant": fresh("variant").header("Vary", "Accept"),
        "/never": fresh("never").header("Vary", "*"),
        "/heuristic": OriginAnswer.ok("heuristic").header("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT"),
        "/nothing": OriginAnswer.ok("says nothing"),
        "/validated": OriginAnswer.ok("validated").header("Cache-Control", "no-cache").header("ETag", "\"v\""),
        "/queries": fresh("queries").header("No-Vary-Search", "params=(\"u\")"),
        "/groups": fresh("groups").header("Cache-Groups", "\"g\""),
        "/refused": noStore,
    ]

    /// The origin's `Date` is that of a clock that runs, and so the age is another where a second ends in between.
    private static func withoutTime(_ line: String) -> String {
        line.replacing(/ttl=[0-9]+/, with: "ttl").replacing(/^Age: [0-9]+/, with: "Age")
    }

    private static func path(_ target: String) -> String { String(target.prefix { $0 != "?" }) }

    /// Runs `body` with a gateway before an origin to which it has a connection that is idle.
    private func run(_ body: (Setting, TestOrigin, RawClient) async throws -> Void) async throws {
        try await withOrigin {
            Self.answers[Self.path($0.path)] ?? Self.fresh($0.path)
        } _: { setting, origin in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/begin"))
            try await body(setting, origin, client)
            try await client.close()
        }
    }

    @Test func answersAreThoseOfLoads() async throws {
        try await run { setting, origin, client in
            for path in Self.answers.keys.sorted() {
                // The connection to the origin may have ended with the answer.
                _ = try await client.exchange(get("/again?\(path)", "Pragma: nothing"))
                let before = setting.cache.relayedCount
                // The first is the miss, the second what is there after it.
                for round in 0..<2 {
                    let short = try await client.exchange(get(path + "?s", "Accept: a/b", "TE: trailers", "X-Own: v"))
                    if round == 0 { #expect(setting.cache.relayedCount == before + 1, Comment(rawValue: path)) }
                    let count = setting.cache.relayedCount
                    let long = try await client.exchange(
                        get(path + "?l", "Accept: a/b", "TE: trailers", "X-Own: v", "Pragma: nothing"))
                    #expect(setting.cache.relayedCount == count)
                    await setting.cache.drain()
                    #expect(short.statusLine == long.statusLine)
                    func lines(_ response: RawResponse) -> [String] {
                        response.fields.filter { path == "/fields" || $0.name != "Date" }
                            .map { Self.withoutTime("\($0.name): \($0.value)") }.sorted()
                    }
                    #expect(lines(short) == lines(long), Comment(rawValue: path))
                    #expect(short.body == long.body)
                }
                let heads = ["?s", "?l"].map { query in
                    origin.requests(for: path + query).map { request in
                        String(decoding: request.rawHead, as: UTF8.self)
                            .replacing("Pragma: nothing\r\n", with: "").replacing(query, with: "?")
                    }
                }
                #expect(heads[0] == heads[1], Comment(rawValue: path))
            }
        }
    }

    @Test func answersAreThoseOfLoadsOverHTTP2() async throws {
        let origin = try await TestOrigin.start { Self.answers[Self.path($0.path)] ?? Self.fresh($0.path) }
        let transport = NIOTransport.patient
        try await withTLS(transport, { $0.routes.otherwise = try OriginServer(origin.url) }) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            for path in Self.answers.keys.sorted() {
                _ = try await client.get("/again?\(path)", [Self.pragma: "nothing"])
                let before = setting.cache.relayedCount
                for round in 0..<2 {
                    let short = try await client.get(path + "?s", [.accept: "a/b"])
                    if round == 0 { #expect(setting.cache.relayedCount == before + 1, Comment(rawValue: path)) }
                    let long = try await client.get(path + "?l", [.accept: "a/b", Self.pragma: "nothing"])
                    await setting.cache.drain()
                    #expect(short.head.status == long.head.status)
                    func fields(_ response: HTTP2Client.Response) -> HTTPFields {
                        var fields = response.head.headerFields
                        if path != "/fields" { fields[.date] = nil }
                        fields[.age] = fields[.age].map { _ in "0" }
                        fields[.cacheStatus] = fields[.cacheStatus].map { Self.withoutTime($0) }
                        return fields
                    }
                    #expect(fields(short) == fields(long), Comment(rawValue: path))
                    #expect(short.body == long.body)
                }
            }
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    /// Runs `body` with a client whose request for `/held` is at the origin, without a load, and waits there.
    private func held(
        _ answer: OriginAnswer = fresh("held"), _ body: (Setting, TestOrigin, RawClient, Gate) async throws -> Void
    ) async throws {
        let gate = Gate()
        let count = Counter()
        try await withOrigin { request in
            if request.method == "POST" { return .ok("changed") }
            guard request.path == "/held" else { return Self.fresh(request.path) }
            let number = count.increment()
            if number == 1 { try? await gate.wait() }
            return number == 1 ? answer : Self.fresh("number \(number)")
        } _: { setting, origin in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/begin"))
            try await client.send(get("/held"))
            await gate.arrival()
            // The origin may have it before the gateway has counted it.
            try await waitWhile { setting.cache.relayedCount < 1 }
            try await body(setting, origin, client, gate)
            gate.open()
            try? await client.close()
        }
    }

    /// Waits until others wait for the answer to that.
    private func waitForFollowers(_ count: Int, _ setting: Setting) async throws {
        let key = "http://example.org/held"
        let generation = setting.cache.changes.generations.current(key)
        try await waitWhile {
            (setting.cache.loader.joinable.leading(key, generation: generation)?.waiterCount ?? 0) < count
        }
    }

    @Test(arguments: [true, false]) func othersJoinIt(isStored: Bool) async throws {
        try await held(isStored ? Self.fresh("held") : Self.noStore) { setting, origin, client, gate in
            let others = [try await setting.connect(), try await setting.connect()]
            for other in others { try await other.send(get("/held")) }
            try await waitForFollowers(2, setting)
            gate.open()
            try await #expect(client.response().text == (isStored ? "held" : "not stored"))
            for other in others {
                let text = try await other.response().text
                #expect(isStored ? text == "held" : text.hasPrefix("number"))
                try await other.close()
            }
            #expect(origin.requests(for: "/held").count == (isStored ? 1 : 3))
        }
    }

    /// Those who wait for a client that leaves ask again, together.
    @Test func aClientThatLeavesIsReplaced() async throws {
        try await held { setting, origin, client, gate in
            let others = [try await setting.connect(), try await setting.connect()]
            for other in others { try await other.send(get("/held")) }
            try await waitForFollowers(2, setting)
            // So late that the client does not only end its side.
            setting.time.advance(seconds: 2)
            try await client.close()
            for other in others {
                try await #expect(other.response().text == "number 2")
                try await other.close()
            }
            #expect(origin.requests(for: "/held").count == 2)
        }
    }

    /// Something newer may lead, or be stored, when those who wait for a client that leaves ask again.
    @Test func aClientThatLeavesIsReplacedByWhatIsStored() async throws {
        try await held { setting, origin, client, gate in
            let other = try await setting.connect()
            try await other.send(get("/held"))
            try await waitForFollowers(1, setting)
            let third = try await setting.connect()
            _ = try await third.exchange(get("/held", "Content-Length: 0", method: "POST"))
            try await #expect(third.exchange(get("/held")).text == "number 2")
            setting.time.advance(seconds: 2)
            try await client.close()
            try await #expect(other.response().text == "number 2")
            try await third.close()
            try await other.close()
            #expect(origin.requests(for: "/held").filter { $0.method == "GET" }.count == 2)
        }
    }

    @Test func itCanBeCancelled() async throws {
        try await held { setting, origin, client, gate in
            let other = try await setting.connect()
            try await other.send(get("/held"))
            try await waitForFollowers(1, setting)
            #expect(setting.cache.cancelAll() == 1)
            try await #expect(client.response().status == 503)
            try await #expect(other.response().status == 503)
            try await other.close()
            await setting.cache.drain()
            #expect(origin.requests(for: "/held").count == 1)
        }
    }

    /// Also while its body arrives, and draining waits for that.
    @Test(arguments: [true, false]) func itIsActiveUntilItsBodyEnds(isCancelled: Bool) async throws {
        let rest = Gate()
        try await withOrigin { request in
            request.path == "/held"
                ? .ok("first").then(rest).then("second").chunked().header("Cache-Control", "no-store")
                : Self.fresh(request.path)
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/begin"))
            await setting.cache.drain()
            try await client.send(get("/held"))
            try await waitWhile { setting.cache.relayedCount < 1 }
            await rest.arrival()
            if isCancelled {
                // Before that it would be answered with an error.
                try await #expect(client.bytes(15) == Array("HTTP/1.1 200 OK".utf8))
                #expect(setting.cache.cancelAll() == 1)
                let got = try? await client.rest()
                let text = got.map { String(decoding: $0, as: UTF8.self) } ?? ""
                #expect(!text.hasSuffix("\r\n0\r\n\r\n") && !text.contains("second"))
            } else {
                async let drained: Void = setting.cache.drain()
                rest.open()
                try await #expect(client.response().text == "firstsecond")
                await drained
            }
            await setting.cache.drain()
            rest.open()
            try await client.close()
        }
    }

    /// What was invalidated since the origin was asked keeps its response out.
    @Test func aResponseFromBeforeAnInvalidationIsNotStored() async throws {
        try await held { setting, _, client, gate in
            let other = try await setting.connect()
            _ = try await other.exchange(get("/held", "Content-Length: 0", method: "POST"))
            gate.open()
            try await #expect(client.response().text == "held")
            try await #expect(other.exchange(get("/held")).text == "number 2")
            try await other.close()
        }
    }

    /// Also where it would answer other queries of the path.
    @Test func anInvalidationOfOtherQueriesCounts() async throws {
        try await held(Self.fresh("held").header("No-Vary-Search", "params")) { setting, _, client, gate in
            let other = try await setting.connect()
            _ = try await other.exchange(get("/held?u=1", "Content-Length: 0", method: "POST"))
            gate.open()
            try await #expect(client.response().text == "held")
            try await #expect(other.exchange(get("/held")).text == "number 2")
            try await other.close()
        }
    }

    /// What answers another query of the path is found, and not asked for again.
    @Test func aResponseToAnotherQueryIsFound() async throws {
        try await run { setting, origin, client in
            for query in ["u=1", "u=2", "u=3"] {
                try await #expect(client.exchange(get("/queries?" + query)).text == "queries")
                await setting.cache.drain()
            }
            #expect(origin.requests.count == 2)
        }
    }

    /// A failure is for all who wait, and is not an answer that others get later.
    @Test func aFailureIsForAllWhoWait() async throws {
        let gate = Gate()
        let isSilent = Counter()
        try await withOrigin { request in
            if request.path == "/held", isSilent.value == 0 { try? await gate.wait() }
            return Self.fresh(request.path)
        } caching: {
            $0.timeouts.read = .seconds(1)
            $0.retries.limit = 0
        } _: { setting, _ in
            let clients = [try await setting.connect(), try await setting.connect()]
            // A busy machine may be late, too.
            var number = 0
            while try await clients[0].exchange(get("/begin\(number)")).status != 200 { number += 1 }
            try await clients[0].send(get("/held"))
            await gate.arrival()
            try await clients[1].send(get("/held"))
            for client in clients { try await #expect(client.response().status == 504) }
            isSilent.increment()
            gate.open()
            while try await clients[0].exchange(get("/held")).status != 200 {}
            for client in clients { try await client.close() }
        }
    }
}
