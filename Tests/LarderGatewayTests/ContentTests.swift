import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import TestOrigin
import TestSupport
import Testing

/// The content of requests, on its way to the origin.
struct ContentTests {
    /// Answers with the content it got.
    static let echo = ScriptedTransport { request throws(TransportError) in
        guard let pull = request.body?.makePull() else { return .text("none") }
        var content: [UInt8] = []
        do {
            while let piece = try await pull() { content += piece }
        } catch {
            throw TransportError(.requestBodyFailed, mayHaveBeenSeen: true, "\(error)")
        }
        return .bytes(content)
    }

    @Test(arguments: [0, 1, 100_000, 2 << 20]) func contentArrivesWhole(_ count: Int) async throws {
        let content = body(count)
        try await withGateway(transport: Self.echo) { setting in
            let client = try await setting.connect()
            for _ in 0..<2 {
                try await client.send(get("/", "Content-Length: \(count)", method: "POST"))
                try await client.send(content)
                try await #expect(client.response().body == content)
                try await client.send(get("/", "Transfer-Encoding: chunked", method: "PUT"))
                for start in stride(from: 0, to: count, by: 70_000) {
                    let piece = content[start..<min(count, start + 70_000)]
                    try await client.send(Array("\(String(piece.count, radix: 16));x=y\r\n".utf8) + piece + [13, 10])
                }
                try await client.send("0\r\nTrailer: x\r\n\r\n")
                try await #expect(client.response().body == content)
            }
            try await client.close()
        }
    }

    @Test func continueIsSentWhenTheContentIsWanted() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            try? await gate.wait()
            guard let piece = try? await request.body?.makePull()() else { return .text("nothing") }
            return .bytes(piece)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Expect: 100-continue", "Content-Length: 3", method: "POST"))
            await gate.arrival()
            gate.open()
            try await #expect(client.response().status == 100)
            try await client.send("abc")
            let response = try await client.response()
            #expect(response.text == "abc")
            #expect(response["Connection"] == nil)
            #expect(transport.requests[0].headerFields[.expect] == "100-continue")
            try await client.close()
        }
    }

    @Test func aRefusalComesInsteadOfContinue() async throws {
        let transport = ScriptedTransport { _ in .text("no", status: 403) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Expect: 100-continue", "Content-Length: 3", method: "POST"))
            let response = try await client.response()
            #expect(response.status == 403)
            #expect(response["Connection"] == "close")
            try await #expect(client.rest().isEmpty)
            try await client.close()
        }
    }

    @Test func aContentThatNobodyReadsIsPassedOver() async throws {
        let transport = ScriptedTransport { _ in .text("early") }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: 100000", method: "POST"))
            try await #expect(client.response().text == "early")
            try await client.send(body(100_000))
            try await #expect(client.exchange(get("/")).text == "early")
            // More than it is worth reading ends the connection.
            try await client.send(get("/", "Content-Length: 10000000", method: "POST"))
            try await #expect(client.response().text == "early")
            try await client.send(body(400_000))
            try await #expect(client.rest().isEmpty)
            try await client.close()
        }
    }

    @Test func contentOverTheLimitIsRefused() async throws {
        try await withGateway(transport: Self.echo) {
            $0.limits.bodyBytes = 1_000
        } _: { setting in
            let declared = try await setting.connect()
            let refusal = try await declared.exchange(get("/", "Content-Length: 1001", method: "POST"))
            #expect(refusal.status == 413)
            #expect(refusal["Connection"] == "close")
            let chunked = try await setting.connect()
            try await chunked.send(get("/", "Transfer-Encoding: chunked", method: "POST"))
            for _ in 0..<11 { try await chunked.send("64\r\n\(String(repeating: "x", count: 100))\r\n") }
            try await #expect(chunked.response().status == 413)
            let exact = try await setting.connect()
            try await exact.send(get("/", "Content-Length: 1000", method: "POST"))
            try await exact.send(body(1_000))
            try await #expect(exact.response().body == body(1_000))
            for client in [declared, chunked, exact] { try await client.close() }
        }
    }

    /// A client is read no faster than the origin takes its content.
    @Test func aSlowOriginHoldsTheClientBack() async throws {
        let gate = Gate()
        let total = 32 << 20
        let transport = ScriptedTransport { request throws(TransportError) in
            guard let pull = request.body?.makePull() else { return .text("none") }
            var count = 0
            do {
                count += try await pull()?.count ?? 0
                try await gate.wait()
                while let piece = try await pull() { count += piece.count }
            } catch {
                throw TransportError(.requestBodyFailed, mayHaveBeenSeen: true, "\(error)")
            }
            return .text("\(count)")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: \(total)", method: "POST"))
            let sent = Counter()
            let piece = [UInt8](repeating: 7, count: 1 << 20)
            let sender = client.sender
            let sending = Task {
                for _ in 0..<(total >> 20) {
                    try await sender.send(piece)
                    sent.add(piece.count)
                }
            }
            await gate.arrival()
            await sent.stands()
            // The buffers of two sockets and one inlet, not the whole content.
            #expect(sent.value < total)
            gate.open()
            try await sending.value
            try await #expect(client.response().text == "\(total)")
            try await client.close()
        }
    }

    @Test func aClientThatLeavesWithinItsContentEndsTheRequest() async throws {
        let arrived = Gate()
        let ended = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            let pull = request.body?.makePull()
            arrived.open()
            do {
                while try await pull?() != nil {}
            } catch {
                ended.open()
                throw TransportError(.requestBodyFailed, mayHaveBeenSeen: true, "\(error)")
            }
            return .text("complete")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: 10", method: "POST") + "abc")
            try await arrived.wait()
            try await client.close()
            try await ended.wait()
        }
    }
}
