import HTTPTestSupport
import HTTPTypes
import LarderGateway
import Locks
import TestOrigin
import TestSupport
import Testing

@testable import LarderHTTP

/// Loads that many clients share, over sockets: client, gateway, transport and origin.
struct SharingTests {
    /// Clients that have sent a request for `/a`; all but the first wait for its answer.
    private func clients(_ count: Int, _ setting: Setting, _ arrived: Gate, _ fields: [String]) async throws
        -> [RawClient]
    {
        var clients: [RawClient] = []
        for number in 0..<count {
            let client = try await setting.connect()
            let own = fields[number % fields.count]
            try await client.send(own.isEmpty ? get("/a") : get("/a", own))
            if number == 0 { await arrived.arrival() }
            clients.append(client)
        }
        let key = "http://example.org/a"
        let generation = setting.cache.changes.generations.current(key)
        try await waitWhile {
            (setting.cache.loader.joinable.leading(key, generation: generation)?.waiterCount ?? 0) < count
        }
        return clients
    }

    @Test func fiftyMissesAreOneRequestAndGetBytesWhileTheyArrive() async throws {
        let (head, rest) = (Gate(), Gate())
        try await withOrigin { _ in
            .ok("first ").then(rest).then("second").chunked().header("Cache-Control", "max-age=60").holding(at: head)
        } _: { setting, origin in
            let clients = try await clients(50, setting, head, [""])
            head.open()
            for client in clients {
                _ = try await client.head()
                // The rest has not been sent.
                try await #expect(client.bytes(11) == Array("6\r\nfirst \r\n".utf8))
            }
            #expect(rest.arrivals == 1)
            rest.open()
            for client in clients {
                try await #expect(client.bytes(16) == Array("6\r\nsecond\r\n0\r\n\r\n".utf8))
                try await client.close()
            }
            #expect(origin.requests.count == 1)
        }
    }

    /// RFC 9110 section 8.6: `Content-Length` in an answer to HEAD is the length that GET would have.
    @Test func headDeclaresNoLengthThatIsNotKnownYet() async throws {
        let (head, rest) = (Gate(), Gate())
        try await withOrigin { _ in
            .ok("first ").then(rest).then("second").chunked().header("Cache-Control", "max-age=60").holding(at: head)
        } _: { setting, origin in
            let client = try await clients(1, setting, head, [""])[0]
            let other = try await setting.connect()
            try await other.send(get("/a", method: "HEAD"))
            let key = "http://example.org/a"
            let generation = setting.cache.changes.generations.current(key)
            try await waitWhile {
                (setting.cache.loader.joinable.leading(key, generation: generation)?.waiterCount ?? 0) < 2
            }
            head.open()
            let answer = try await other.head()
            #expect(answer["Cache-Status"]?.contains("collapsed") == true)
            #expect(answer["Content-Length"] == nil)
            rest.open()
            try await #expect(client.response().text == "first second")
            #expect(origin.requests.count == 1)
            try await client.close()
            try await other.close()
        }
    }

    @Test func fiftyRevalidationsAreOneRequest() async throws {
        let held = Gate()
        try await withOrigin { request in
            guard request["If-None-Match"] != nil else {
                return .ok("page").header("ETag", "\"a\"").header("Cache-Control", "max-age=9").header("Age", "99")
            }
            return .status(304).header("ETag", "\"a\"").header("Cache-Control", "max-age=60").header("Age", "0")
                .holding(at: held)
        } _: { setting, origin in
            let first = try await setting.connect()
            try await #expect(first.exchange(get("/a")).text == "page")
            try await first.close()
            let fields = ["", "If-None-Match: \"a\"", "If-None-Match: \"b\""]
            let clients = try await clients(50, setting, held, fields)
            held.open()
            for (number, client) in clients.enumerated() {
                let response = try await client.head()
                #expect(response.status == (number % 3 == 1 ? 304 : 200))
                if number % 3 != 1 { try await #expect(client.bytes(4) == Array("page".utf8)) }
                try await client.close()
            }
            #expect(origin.requests.count == 2)
        }
    }

    /// One of those who share a body does not read it.
    @Test func aSlowReaderDoesNotHoldUpTheOthers() async throws {
        let held = Gate()
        let content = body(4 << 20)
        try await withOrigin { _ in
            .ok(content).header("Cache-Control", "max-age=60").holding(at: held)
        } _: { setting, origin in
            let slow = try await RawClient.connect(to: setting.port, receiveBuffer: 4_096)
            try await slow.setReading(false)
            try await slow.send(get("/a"))
            await held.arrival()
            let fast = try await setting.connect()
            try await fast.send(get("/a"))
            let key = "http://example.org/a"
            let generation = setting.cache.changes.generations.current(key)
            try await waitWhile {
                (setting.cache.loader.joinable.leading(key, generation: generation)?.waiterCount ?? 0) < 2
            }
            held.open()
            let isWhole = try await fast.response().body == content
            #expect(isWhole)
            // The slow one begins when all is over.
            try await slow.setReading(true)
            let isWholeToo = try await slow.response().body == content
            #expect(isWholeToo && origin.requests.count == 1)
            try await fast.close()
            try await slow.close()
        }
    }

    @Test func aRangeCostsItsOwnBytesAndGapsAreFilled() async throws {
        let content = body(3 << 20)
        let page = OriginResource(content, etag: "\"a\"")
        try await withOrigin {
            page.answer($0).header("Cache-Control", "max-age=60")
        } _: { setting, origin in
            let client = try await setting.connect()
            for (first, last) in [(0, 999_999), (1_500_000, 1_500_009), (2_000_000, 2_500_000)] {
                let response = try await client.exchange(get("/a", "Range: bytes=\(first)-\(last)"))
                let isPart = response.status == 206 && response.body == Array(content[first...last])
                #expect(isPart)
            }
            await setting.cache.drain()
            // From the file of the part, in which there are holes.
            for (first, last) in [(10, 899_999), (1_500_001, 1_500_008), (2_000_001, 2_400_000)] {
                let response = try await client.exchange(get("/a", "Range: bytes=\(first)-\(last)"))
                #expect(response.status == 206 && response["Cache-Status"]?.contains("hit") == true)
                let isPart = response.body == Array(content[first...last])
                #expect(isPart)
            }
            let whole = try await client.exchange(get("/a"))
            let isWhole = whole.status == 200 && whole.body == content
            #expect(isWhole)
            let asked = origin.requests.dropFirst(3).map { $0["Range"] }
            #expect(asked == ["bytes=1000000-1499999", "bytes=1500010-1999999", "bytes=2500001-3145727"])
            await setting.cache.drain()
            let again = try await client.exchange(get("/a"))
            #expect(again["Cache-Status"]?.contains("hit") == true)
            let isSame = again.body == content
            #expect(isSame && setting.cache.changes.responses.copiedBytes.load(ordering: .relaxed) == 0)
            try await client.close()
        }
    }

    @Test func anOriginThatIgnoresRangesGetsOneRequest() async throws {
        try await withOrigin { _ in
            .ok("0123456789").header("Cache-Control", "max-age=60")
        } _: { setting, origin in
            let client = try await setting.connect()
            let part = try await client.exchange(get("/a", "Range: bytes=2-4"))
            #expect(part.status == 206 && part.text == "234" && part["Content-Range"] == "bytes 2-4/10")
            await setting.cache.drain()
            try await #expect(client.exchange(get("/a")).text == "0123456789")
            #expect(origin.requests.count == 1)
            try await client.close()
        }
    }

    /// An outage does not look healthy because stale responses hide it.
    @Test func failuresThatAStaleResponseHidesAreCounted() async throws {
        try await withOrigin(
            { request in
                request.order == 1
                    ? .ok("old").header("ETag", "\"a\"").header("Cache-Control", "max-age=9").header("Age", "99")
                    : .raw("", then: .close)
            }, caching: { $0.originFailureMemory = nil }
        ) { setting, origin in
            let client = try await setting.connect()
            for _ in 0..<3 { try await #expect(client.exchange(get("/a")).text == "old") }
            let metrics = try await exchange(setting.adminPort, get("/metrics")).text
            #expect(metrics.contains("larder_gateway_upstream_errors_total 2\n"))
            #expect(metrics.contains("larder_gateway_answers_total{source=\"fallback\"} 2\n"))
            try await client.close()
        }
    }
}
