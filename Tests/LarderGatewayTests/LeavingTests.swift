import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import TestOrigin
import TestSupport
import Testing

/// Ends: of clients, of origins, of the gateway.
struct LeavingTests {
    @Test(arguments: [false, true]) func aClientThatLeavesCancelsItsLoad(_ resets: Bool) async throws {
        let arrived = Gate()
        let cancelled = Gate()
        let transport = ScriptedTransport { _ throws(TransportError) in
            arrived.open()
            do {
                try await Gate().wait()
            } catch {
                cancelled.open()
            }
            throw TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/"))
            try await arrived.wait()
            // A client that ends its side with its request may be waiting for the answer; later, it has left.
            setting.time.advance(seconds: 2)
            if resets { try await client.reset() } else { try await client.close() }
            try await cancelled.wait()
        }
    }

    /// As `printf 'GET ...' | nc` does.
    @Test(arguments: ["", "Connection: close"])
    func aClientThatEndsItsSideWithItsRequestsGetsItsAnswers(field: String) async throws {
        let hasEnded = Latch()
        let transport = ScriptedTransport { request in
            await hasEnded.wait()
            return .bytes(body(100_000, request.head.path == "/a" ? 1 : 2), fresh)
        }
        try await withGateway(transport: transport) { setting in
            for _ in 0..<2 {
                let client = try await setting.connect()
                try await client.send(get("/a") + (field.isEmpty ? get("/b") : get("/b", field)))
                try await client.finishSending()
                hasEnded.open()
                try await #expect(client.response().body == body(100_000, 1))
                try await #expect(client.response().body == body(100_000, 2))
                try await #expect(client.rest().isEmpty)
            }
            await #expect(setting.gateway.readCounters().clientAborts == 0)
        }
    }

    @Test func aClientThatEndsItsSideBeforeTheEndOfItsContentHasLeft() async throws {
        try await withGateway(transport: ScriptedTransport.takingContent()) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: 10", method: "POST") + "12345")
            try await client.finishSending()
            try await #expect(client.rest().isEmpty)
        }
    }

    /// As `nc -N` does with a file: the queue of its content is full when its end comes.
    @Test func aClientThatEndsItsSideWithItsContentGetsItsAnswer() async throws {
        let mayRead = Latch()
        let taking = ScriptedTransport.takingContent()
        let transport = ScriptedTransport { request throws(TransportError) in
            if request.head.method == .get { return .text("other") }
            await mayRead.wait()
            return try await taking.send(request)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: 524288", method: "POST"))
            try await client.send(body(512 << 10, 1))
            try await client.finishSending()
            // Also what has no room in the queue: a connection that ends is read to its end.
            try await setting.waitForBytes(512 << 10)
            mayRead.open()
            try await #expect(client.response().text == "complete")
            try await #expect(client.rest().isEmpty)
        }
    }

    @Test func contentThatBreaksOffTakesNoEarlierAnswerAlong() async throws {
        let mayAnswer = Latch()
        let taking = ScriptedTransport.takingContent()
        let transport = ScriptedTransport { request throws(TransportError) in
            if request.head.method == .post { return try await taking.send(request) }
            if request.head.path == "/a" { await mayAnswer.wait() }
            return TransportResponse(
                head: HTTPResponse(status: .ok), body: Pieces([Array("first".utf8)]).body(length: nil))
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/a") + get("/b", "Content-Length: 5", method: "POST") + "ab")
            try await client.finishSending()
            // The event loop has seen its end when it answers another.
            let other = try await setting.connect()
            try await #expect(other.exchange(get("/other")).text == "first")
            try await other.close()
            mayAnswer.open()
            try await #expect(client.response().text == "first")
            try await #expect(client.rest().isEmpty)
        }
    }

    /// Behind requests that wait until it reads.
    @Test func contentThatDoesNotComeAnyMoreEndsTheConnection() async throws {
        let transport = ScriptedTransport { _ in .bytes(body(600_000, 1), fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await RawClient.connect(to: setting.port, receiveBuffer: 64 << 10)
            _ = try await client.exchange(get("/a"))
            try await client.setReading(false)
            try await client.send(
                String(repeating: get("/a"), count: 20) + get("/", "Content-Length: 10", method: "POST") + "12345")
            try await client.finishSending()
            await setting.settles()
            try await client.setReading(true)
            for _ in 0..<20 { try await #expect(client.response().body == body(600_000, 1)) }
            // With an answer to the last, or without.
            _ = try await client.rest()
            try await setting.waitForConnections(0)
        }
    }

    /// Hits, shared and lonely misses, stored and not; heads and bodies that are on their way when the client goes.
    @Test func clientsMayLeaveAtAnyMoment() async throws {
        let transport = ScriptedTransport { request in
            // For any order of events; nothing is waited for, here and below.
            for _ in 0..<Int.random(in: 0...20) { await Task.yield() }
            let isKept = request.head.path?.hasPrefix("/kept") == true
            return .bytes(body(300_000, 1), [.cacheControl: isKept ? "max-age=60" : "no-store"])
        }
        try await withGateway(transport: transport) { setting in
            try await withThrowingTaskGroup { group in
                for number in 0..<16 {
                    group.addTask {
                        for round in 0..<40 {
                            let client = try await setting.connect()
                            let paths = ["/kept/\(number)-\(round)", "/kept/\(round)", "/other/\(number)-\(round)"]
                            try await client.send(get(paths[(number + round) % 3]))
                            for _ in 0..<Int.random(in: 0...40) { await Task.yield() }
                            if round % 4 == 0 { _ = try? await client.head() }
                            if round % 2 == 0 { try? await client.reset() } else { try? await client.close() }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let client = try await setting.connect()
            let isWhole = try await client.exchange(get("/kept/0")).body == body(300_000, 1)
            #expect(isWhole)
            try await client.close()
        }
    }

    @Test func anOriginThatBreaksOffCutsTheAnswer() async throws {
        let transport = ScriptedTransport { request in
            let pieces = Pieces([Array("first".utf8)], isComplete: false)
            let hasLength = request.head.path == "/length"
            return TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: hasLength ? [.contentLength: "10"] : [:]),
                body: pieces.body(length: hasLength ? 10 : nil))
        }
        try await withGateway(transport: transport) { setting in
            for path in ["/length", "/chunked"] {
                let client = try await setting.connect()
                try await client.send(get(path))
                let head = try await client.head()
                #expect(head.status == 200)
                let rest = String(decoding: try await client.rest(), as: UTF8.self)
                #expect(rest == (path == "/length" ? "first" : "5\r\nfirst\r\n"), "no end of the content")
                try await client.close()
            }
            // Where the end of the connection would be the end of the content, it is a reset.
            let old = try await setting.connect()
            try await old.send(get("/chunked", version: "1.0"))
            await #expect(throws: (any Error).self) { _ = try await old.rest() }
            // No part of it was stored.
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test(arguments: [
        (TransportError.Code.cannotConnect, 502), (.closed, 502), (.malformedResponse, 502), (.timedOut, 504),
        (.responseTooLarge, 502),
    ])
    func failuresOfTheOriginAreSaidInWords(_ code: TransportError.Code, _ status: Int) async throws {
        let transport = ScriptedTransport { _ throws(TransportError) in
            throw TransportError(code, mayHaveBeenSeen: true, "secret detail")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            for _ in 0..<2 {
                let response = try await client.exchange(get("/"))
                #expect(response.status == status)
                #expect(response["Content-Type"] == "text/plain; charset=utf-8")
                #expect(response["Date"] == "Sat, 21 Nov 2026 14:08:10 GMT")
                #expect(response["Cache-Status"] == nil)
                #expect(response.text.contains("origin"))
                #expect(!response.text.contains("secret"))
            }
            try await client.close()
        }
    }

    @Test func whatIsNotStoredAndMayNotBeLoadedIs504() async throws {
        try await withGateway(transport: ScriptedTransport { _ in .text("x") }) { setting in
            setting.cache.isOffline = true
            let client = try await setting.connect()
            try await #expect(client.exchange(get("/")).status == 504)
            try await #expect(client.exchange(get("/", "Cache-Control: only-if-cached")).status == 504)
            try await client.close()
        }
    }

    /// RFC 9111 section 5.2.1.7. The answer is the gateway's own.
    @Test func onlyIfCachedIsAnsweredLikeOtherRefusals() async throws {
        try await withGateway(transport: ScriptedTransport { _ in .text("x", fresh) }) {
            $0.adminPort = 0
        } _: { setting in
            let client = try await setting.connect()
            let response = try await client.exchange(get("/", "Cache-Control: only-if-cached"))
            #expect(response.status == 504)
            #expect(response["Date"] == "Sat, 21 Nov 2026 14:08:10 GMT")
            #expect(response["Cache-Status"] == nil)
            #expect(response.text == "The response is not stored, and the origin may not be asked.\n")
            let metrics = try await exchange(setting.adminPort, get("/metrics")).text
            #expect(metrics.contains("larder_gateway_answers_total{source=\"gateway\"} 1\n"))
            #expect(metrics.contains("larder_gateway_answers_total{source=\"network\"} 0\n"))
            try await #expect(client.exchange(get("/")).text == "x")
            try await #expect(client.exchange(get("/", "Cache-Control: only-if-cached")).text == "x")
            try await client.close()
        }
    }

    /// A client that does not read holds the origin back, not the gateway's memory.
    @Test func aClientThatDoesNotReadHoldsTheOriginBack() async throws {
        let produced = Counter()
        let total = 32 << 20
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        let transport = ScriptedTransport { _ in
            TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]),
                body: TransportBody { () throws(TransportError) in
                    produced.add(1 << 20) <= total ? piece : nil
                })
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.setReading(false)
            try await client.send(get("/"))
            // The next request is served meanwhile, on the same event loop.
            let other = try await setting.connect()
            await produced.stands()
            #expect(produced.value < total)
            try await client.setReading(true)
            let response = try await client.response()
            #expect(response.body.count == total)
            try await client.close()
            try await other.close()
        }
    }

    @Test func stoppingFinishesWhatIsUnderWay() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            if request.head.path == "/slow" { try? await gate.wait() }
            return .text("done")
        }
        try await withGateway(transport: transport) { setting in
            let idle = try await setting.connect()
            _ = try await idle.exchange(get("/"))
            let busy = try await setting.connect()
            try await busy.send(get("/slow"))
            await gate.arrival()
            async let stopped: Void = setting.gateway.stop(drain: .seconds(600))
            // Idle connections are closed at once.
            try await #expect(idle.rest().isEmpty)
            await #expect(throws: (any Error).self) { _ = try await setting.connect() }
            gate.open()
            let response = try await busy.response()
            #expect(response.text == "done")
            #expect(response["Connection"] == "close")
            try await #expect(busy.rest().isEmpty)
            try await busy.close()
            await stopped
        }
    }

    @Test func stoppingEndsWhatTakesTooLong() async throws {
        try await withRequestThatWaits { setting, client, _ in
            await setting.gateway.stop(drain: .milliseconds(1))
            try await #expect(client.rest().isEmpty)
        }
    }
}
