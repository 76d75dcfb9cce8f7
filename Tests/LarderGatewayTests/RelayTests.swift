import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// Responses that are known not to be stored are passed on without a load, and no one sees a difference: a `Pragma`
/// that says nothing sends the same request the long way.
struct RelayTests {
    private static let pragma = HTTPField.Name("Pragma")!
    private static let noStore = OriginAnswer.ok("not stored").header("Cache-Control", "no-store")

    /// What an origin answers, by path.
    private static let answers: [String: OriginAnswer] = [
        "/plain": noStore.header("X-Fields", "one").header("X-Fields", "two").header("Content-Type", "text/plain"),
        "/empty": OriginAnswer.ok("").header("Cache-Control", "private"),
        "/chunks": OriginAnswer.ok("first").then("second").chunked().header("Cache-Control", "no-store"),
        "/close": OriginAnswer.ok("until the end").untilClose().header("Cache-Control", "no-store"),
        "/long": OriginAnswer.ok(String(repeating: "l", count: 300_000)).header("Cache-Control", "no-store"),
        "/missing": OriginAnswer.status(404, "none").header("Cache-Control", "no-store"),
        "/fields": noStore.header("Connection", "X-Hop").header("X-Hop", "h").header("Keep-Alive", "timeout=5")
            .header("Via", "1.1 origin").header("Date", "Sat, 01 Jan 2000 00:00:00 GMT").header("Vary", "Accept"),
        "/early": noStore.interim(103, [.init("Link", "</a>")]),
    ]

    /// Runs `body` with a gateway before an origin, whose every path has been asked for once.
    private func run(
        _ answers: [String: OriginAnswer] = Self.answers,
        _ body: (Setting, TestOrigin, RawClient) async throws -> Void
    ) async throws {
        try await withOrigin { request in
            answers[request.path] ?? Self.noStore
        } _: { setting, origin in
            let client = try await setting.connect()
            for path in answers.keys.sorted() { _ = try await client.exchange(get(path)) }
            try await body(setting, origin, client)
            try await client.close()
        }
    }

    @Test func relayedAnswersAreThoseOfLoads() async throws {
        try await run { setting, origin, client in
            for path in Self.answers.keys.sorted() {
                // The connection to the origin may have ended with the answer.
                _ = try await client.exchange(get("/plain", "Pragma: nothing"))
                let before = setting.cache.relayedCount
                let short = try await client.exchange(get(path, "Accept: a/b", "TE: trailers", "X-Own: v"))
                #expect(setting.cache.relayedCount == before + 1, Comment(rawValue: path))
                let long = try await client.exchange(
                    get(path, "Accept: a/b", "TE: trailers", "X-Own: v", "Pragma: nothing"))
                #expect(setting.cache.relayedCount == before + 1)
                #expect(short.statusLine == long.statusLine)
                func lines(_ response: RawResponse) -> [String] {
                    response.fields.filter { path == "/fields" || $0.name != "Date" }.map { "\($0.name): \($0.value)" }
                }
                #expect(lines(short) == lines(long))
                #expect(short.body == long.body)
                let asked = origin.requests(for: path).suffix(2).map { request in
                    String(decoding: request.rawHead, as: UTF8.self).replacing("Pragma: nothing\r\n", with: "")
                }
                #expect(asked.first == asked.last)
            }
        }
    }

    @Test func aClientThatWantsNoOtherAnswerGetsOneWithoutALoad() async throws {
        try await run { setting, _, client in
            for path in ["/plain", "/empty", "/chunks", "/close", "/long", "/early"] {
                _ = try await client.exchange(get("/plain", "Pragma: nothing"))
                let before = setting.cache.relayedCount
                let closing = try await setting.connect()
                let short = try await closing.exchange(get(path, "Connection: close"))
                #expect(setting.cache.relayedCount == before + 1, Comment(rawValue: path))
                try await #expect(closing.rest().isEmpty)
                let long = try await setting.connect().exchange(get(path, "Connection: close", "Pragma: nothing"))
                #expect(short["Connection"] == "close" && long["Connection"] == "close")
                #expect(short.statusLine == long.statusLine)
                #expect(short.body == long.body)
            }
        }
    }

    @Test func theyAreThoseOfLoadsOverHTTP2() async throws {
        let origin = try await TestOrigin.start { Self.answers[$0.path] ?? Self.noStore }
        let transport = NIOTransport.patient
        try await withTLS(transport, { $0.routes.otherwise = try OriginServer(origin.url) }) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            for path in Self.answers.keys.sorted() {
                _ = try await client.get(path)
                _ = try await client.get("/plain", [Self.pragma: "nothing"])
                let before = setting.cache.relayedCount
                let short = try await client.get(path, [.accept: "a/b"])
                #expect(setting.cache.relayedCount == before + 1, Comment(rawValue: path))
                let long = try await client.get(path, [.accept: "a/b", Self.pragma: "nothing"])
                #expect(short.head.status == long.head.status)
                func fields(_ response: HTTP2Client.Response) -> HTTPFields {
                    var fields = response.head.headerFields
                    if path != "/fields" { fields[.date] = nil }
                    return fields
                }
                #expect(fields(short) == fields(long))
                #expect(short.body == long.body)
                #expect(short.informational.count == long.informational.count)
            }
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    @Test func interimResponsesArePassedOn() async throws {
        try await run { setting, _, client in
            let before = setting.cache.relayedCount
            try await client.send(get("/early"))
            let early = try await client.response()
            #expect(early.status == 103)
            #expect(early["Link"] == "</a>")
            try await #expect(client.response().text == "not stored")
            #expect(setting.cache.relayedCount == before + 1)
        }
    }

    /// An origin may send as many as it likes: the stack does not grow with them.
    @Test func thousandsOfInterimResponsesAreReadInOneRead() async throws {
        let count = Counter()
        try await withOrigin { _ in
            if count.increment() == 1 { return Self.noStore }
            let interim = String(repeating: "HTTP/1.1 103 \r\n\r\n", count: 9_000)
            return .raw(interim + "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nlast")
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await #expect(client.exchange(get("/")).text == "last")
            #expect(setting.cache.relayedCount == 1)
            try await client.close()
        }
    }

    /// A relay that becomes a load takes its client's place with it.
    @Test func aRelayThatBecomesALoadIsOneRequest() async throws {
        let count = Counter()
        let origin = try await TestOrigin.start { _ in
            count.increment() <= 2 ? Self.noStore : .ok("stored").header("Cache-Control", "max-age=3600")
        }
        let transport = NIOTransport.patient
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
            $0.limits.requestsPerClient = 1
            $0.limits.limitsLoopback = true
        } _: { setting in
            let client = try await setting.connect()
            var statuses: [Int] = []
            for _ in 0..<3 { statuses.append(try await client.exchange(get("/")).status) }
            #expect(statuses == [200, 200, 200])
            #expect(setting.cache.relayedCount == 2)
            try await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    /// Requests that say more than the URL are judged by the rules.
    @Test func otherRequestsAreLoaded() async throws {
        try await run { setting, _, client in
            let before = setting.cache.relayedCount
            for field in [
                "Range: bytes=0-1", "If-None-Match: \"a\"", "Cache-Control: no-cache", "Authorization: Basic eDp5",
                "Connection: X-Own",
            ] {
                _ = try await client.exchange(get("/plain", field))
            }
            _ = try await client.exchange(get("/plain", method: "HEAD"))
            _ = try await client.exchange(get("/new", "Pragma: nothing"))
            #expect(setting.cache.relayedCount == before)
        }
    }

    /// What can be stored again is: the response goes to a load.
    @Test func aResponseThatCanBeStoredIsStored() async throws {
        let count = Counter()
        try await withOrigin { _ in
            count.increment() <= 2 ? Self.noStore : .ok("stored").header("Cache-Control", "max-age=3600")
        } _: { setting, origin in
            let client = try await setting.connect()
            var texts: [String] = []
            for _ in 0..<5 {
                texts.append(try await client.exchange(get("/")).text)
                await setting.cache.drain()
            }
            try await client.close()
            #expect(texts == ["not stored", "not stored", "stored", "stored", "stored"])
            #expect(setting.cache.relayedCount == 2)
            #expect(origin.requests.count == 3)
        }
    }

    /// What was invalidated since the origin was asked keeps its response out.
    @Test func aResponseFromBeforeAnInvalidationIsNotStored() async throws {
        let gate = Gate()
        let count = Counter()
        try await withOrigin { request in
            if request.method == "POST" { return .ok("changed") }
            let number = count.increment()
            if number == 1 { return Self.noStore }
            if number == 2 { try? await gate.wait() }
            return .ok("\(number)").header("Cache-Control", "max-age=3600")
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await client.send(get("/"))
            await gate.arrival()
            // The origin may have it before the gateway has counted it.
            try await waitWhile { setting.cache.relayedCount < 1 }
            let other = try await setting.connect()
            _ = try await other.exchange(get("/", "Content-Length: 0", method: "POST"))
            gate.open()
            try await #expect(client.response().text == "2")
            await setting.cache.drain()
            try await #expect(other.exchange(get("/")).text == "3")
            try await other.close()
            try await client.close()
        }
    }

    /// A 304 that no one asked for is an error, whichever way it comes.
    @Test func anUnsolicited304IsAnError() async throws {
        let count = Counter()
        try await withOrigin { _ in
            count.increment() == 1 ? Self.noStore : .status(304).header("Cache-Control", "no-store")
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            let short = try await client.exchange(get("/"))
            #expect(setting.cache.relayedCount == 1)
            let long = try await client.exchange(get("/", "Pragma: nothing"))
            #expect(short.status == 502)
            #expect(long.status == 502)
            try await client.close()
        }
    }

    /// The origin closes its connection when the next request comes: that is sent again.
    @Test func aConnectionThatTheOriginClosedIsReplaced() async throws {
        let count = Counter()
        try await withOrigin { _ in
            let number = count.increment()
            return number == 2 ? .raw("") : Self.noStore
        } _: { setting, origin in
            let client = try await setting.connect()
            for _ in 0..<3 { try await #expect(client.exchange(get("/")).text == "not stored") }
            try await client.close()
            #expect(origin.requests.count == 4)
        }
    }

    /// A client that leaves ends the request to the origin, and its place is free.
    @Test func aClientThatLeavesEndsIt() async throws {
        let gate = Gate()
        let count = Counter()
        try await withOrigin { _ in
            if count.increment() == 2 { try? await gate.wait() }
            return Self.noStore
        } _: { setting, origin in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await client.send(get("/"))
            await gate.arrival()
            // The origin may have it before the gateway has counted it.
            try await waitWhile { setting.cache.relayedCount < 1 }
            // So late that the client does not only end its side.
            setting.time.advance(seconds: 2)
            try await client.close()
            await origin.wait { $0.connectionsOpen == 0 }
            gate.open()
            let second = try await setting.connect()
            try await #expect(second.exchange(get("/")).text == "not stored")
            try await second.close()
        }
    }

    /// A server that stops finishes what is under way.
    @Test func itIsFinishedWhenTheGatewayStops() async throws {
        let gate = Gate()
        let count = Counter()
        try await withOrigin { _ in
            if count.increment() == 2 { try? await gate.wait() }
            return Self.noStore
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await client.send(get("/"))
            await gate.arrival()
            async let stopped: Void = setting.gateway.stop(drain: .seconds(30))
            let worker = setting.gateway.server.workers[0]
            try await waitWhile { try await !worker.eventLoop.submit { worker.isDraining }.get() }
            gate.open()
            let answer = try await client.response()
            #expect(answer.text == "not stored")
            #expect(answer["Connection"] == "close")
            try await client.close()
            await stopped
        }
    }

    /// An origin that says nothing gets as long as it does from a load.
    @Test func anOriginThatDoesNotAnswerTimesOut() async throws {
        let gate = Gate()
        let isSilent = Counter()
        try await withOrigin {
            _ in
            if isSilent.value > 0 { try? await gate.wait() }
            return Self.noStore
        } caching: {
            $0.timeouts.read = .milliseconds(200)
        } _: { setting, _ in
            let client = try await setting.connect()
            // A busy machine may be late, too.
            while try await client.exchange(get("/")).status != 200 {}
            isSilent.increment()
            try await #expect(client.exchange(get("/")).status == 504)
            #expect(setting.cache.relayedCount > 0)
            gate.open()
            while try await client.exchange(get("/")).status != 200 {}
            try await client.close()
        }
    }

    /// Several requests that come together are answered in order.
    @Test func requestsInARowAreAnsweredInOrder() async throws {
        try await run { setting, _, client in
            let before = setting.cache.relayedCount
            let paths = ["/plain", "/missing", "/empty", "/long", "/plain"]
            try await client.send(paths.map { get($0) }.joined())
            for path in paths {
                let response = try await client.response()
                #expect(response.status == (path == "/missing" ? 404 : 200))
                #expect(response.body.count == ["/empty": 0, "/long": 300_000, "/missing": 4][path] ?? 10)
            }
            #expect(setting.cache.relayedCount == before + paths.count)
        }
    }

    /// Where no connection to the origin is idle, one is opened, and no load begins.
    @Test func aRelayOpensItsConnection() async throws {
        try await withOrigin { _ in
            Self.noStore.closing()
        } _: { setting, origin in
            let client = try await setting.connect()
            // The first shows what it is.
            for _ in 0..<4 { try await #expect(client.exchange(get("/")).text == "not stored") }
            #expect(setting.cache.relayedCount == 3)
            #expect(origin.requests.count == 4)
            try await client.close()
        }
    }

    /// An origin that takes no connections any more.
    @Test func aRelayWhoseConnectionIsRefusedFails() async throws {
        let origin = try await TestOrigin.start { _ in Self.noStore.closing() }
        let transport = NIOTransport.patient
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } caching: {
            $0.retries.limit = 0
        } _: { setting in
            let client = try await setting.connect()
            try await #expect(client.exchange(get("/")).text == "not stored")
            await origin.stop()
            for _ in 0..<2 { try await #expect(client.exchange(get("/")).status == 502) }
            #expect(setting.cache.relayedCount == 1)
            try await client.close()
        }
        await transport.close()
    }

    /// A request that failed counts as one of the attempts.
    @Test func aRelayIsTheFirstAttempt() async throws {
        let count = Counter()
        try await withOrigin { _ in
            count.increment() == 1 ? Self.noStore.closing() : .raw("")
        } caching: {
            $0.retries = RetryPolicy(limit: 2, delay: .zero, repeatsIdempotent: true)
        } _: { setting, origin in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await #expect(client.exchange(get("/")).status == 502)
            #expect(setting.cache.relayedCount == 1)
            #expect(origin.requests.count == 1 + 3)
            try await client.close()
        }
    }

    /// Where one has to be opened, the request waits for it behind the answers before.
    @Test func aRelayWithoutAConnectionKeepsTheOrder() async throws {
        try await withOrigin { request in
            request.path == "/hit" ? .ok("hit").header("Cache-Control", "max-age=3600") : Self.noStore.closing()
        } _: { setting, _ in
            let client = try await setting.connect()
            for path in ["/hit", "/"] { _ = try await client.exchange(get(path)) }
            await setting.cache.drain()
            try await setting.store.perform { try $0.flush() }
            for _ in 0..<3 {
                try await client.send(get("/hit") + get("/") + get("/hit"))
                for text in ["hit", "not stored", "hit"] { try await #expect(client.response().text == text) }
            }
            try await client.close()
        }
    }

    /// The same where the client has no place left for it: it is refused, in its turn.
    @Test func aRelayWithoutAPlaceKeepsTheOrder() async throws {
        let origin = try await TestOrigin.start { request in
            request.path == "/hit" ? .ok("hit").header("Cache-Control", "max-age=3600") : Self.noStore
        }
        let gate = Gate()
        origin.script("/held", .ok("held").header("Cache-Control", "no-store").holding(at: gate))
        let transport = NIOTransport.patient
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
            $0.limits.requestsPerClient = 1
            $0.limits.limitsLoopback = true
        } _: { setting in
            let client = try await setting.connect()
            for path in ["/hit", "/"] { _ = try await client.exchange(get(path)) }
            await setting.cache.drain()
            try await setting.store.perform { try $0.flush() }
            let other = try await setting.connect()
            try await other.send(get("/held"))
            await gate.arrival()
            try await client.send(get("/hit") + get("/") + get("/hit"))
            for status in [200, 429, 200] { try await #expect(client.response().status == status) }
            await #expect(setting.gateway.readCounters().refusedRequests == 1)
            gate.open()
            try await #expect(other.response().text == "held")
            try await other.close()
            try await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    /// A response that breaks off is cut off at the client, too.
    @Test func aBodyThatBreaksOffIsCutOff() async throws {
        let count = Counter()
        try await withOrigin { _ in
            let whole = OriginAnswer.ok(String(repeating: "l", count: 300_000)).header("Cache-Control", "no-store")
            return count.increment() == 2 ? whole.truncated(after: 200_000) : whole
        } _: { setting, _ in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            try await client.send(get("/"))
            await #expect(throws: (any Error).self) { try await client.response() }
            #expect(setting.cache.relayedCount == 1)
            try await client.close()
        }
    }
}
