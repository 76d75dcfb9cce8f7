import HTTPTestSupport
import HTTPTypes
import Larder
import TestOrigin
import TestSupport
import Testing

/// Large bodies that are sent from the store's memory.
struct SharedBodyTests {
    /// More than the channel takes at once is flushed between two requests of one read, which finds it writable again.
    @Test func answersStayInOrderWhenTheyAreFlushedOnTheWay() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            guard request.head.path == "/late" else {
                return .bytes(body(40_000, 1), [.cacheControl: "max-age=60"])
            }
            try? await gate.wait()
            return .text("late")
        }
        try await withGateway(transport: transport, storeMemory: .zero) { setting in
            let client = try await setting.connect()
            for path in ["/1", "/2"] { _ = try await client.exchange(get(path)) }
            try await client.send(["/1", "/2", "/late", "/1"].map { get($0) }.joined())
            for _ in 0..<2 { try await #expect(client.response().body.count == 40_000) }
            gate.open()
            try await #expect(client.response().text == "late")
            try await #expect(client.response().body.count == 40_000)
            try await client.close()
        }
    }

    @Test func aClientGetsTheBytesThatAreCurrent() async throws {
        let first = body(700_000, 1)
        let second = body(600_000, 2)
        let transport = ScriptedTransport { request in
            let answers = request.head.path == "/first" ? first : second
            return .bytes(answers, [.cacheControl: "max-age=60"])
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            // In turn, and several at once: answers from memory and from the file follow each other.
            for round in 0..<4 {
                let paths = ["/first", "/second", "/first", "/first", "/second"]
                try await client.send(paths.map { get($0) }.joined())
                for path in paths {
                    let response = try await client.response()
                    #expect(response.body == (path == "/first" ? first : second), "round \(round), \(path)")
                }
            }
            #expect(transport.requests.count == 2)
            try await client.send(get("/first", method: "PURGE"))
            try await #expect(client.response().status == 200)
            try await client.send(get("/first"))
            let response = try await client.response()
            #expect(response.body == first && transport.requests.count == 3)
            try await client.close()
        }
    }

    /// In the index, in files that are decompressed by the lookup, and in files that are read piece by piece.
    @Test(arguments: [3_000, 500_000, 3_000_000])
    func compressedBodiesAreSentAsTheyCame(_ length: Int) async throws {
        let text = Array(String(repeating: "a line of text\n", count: length / 15 + 1).utf8.prefix(length))
        let transport = ScriptedTransport { _ in
            .bytes(text, [.cacheControl: "max-age=60", .contentType: "text/plain"])
        }
        try await withGateway(transport: transport, compression: .trial) { setting in
            let client = try await setting.connect()
            for _ in 0..<4 {
                try await #expect(client.exchange(get("/")).body == text)
                try await client.send(get("/", "Range: bytes=100-2099"))
                let part = try await client.response()
                #expect(part.status == 206 && part.body == Array(text[100..<2_100]))
            }
            #expect(transport.requests.count == 1)
            try await #expect(setting.store.perform { try $0.statistics().compressionGain } > .zero)
            try await client.close()
        }
    }
}
