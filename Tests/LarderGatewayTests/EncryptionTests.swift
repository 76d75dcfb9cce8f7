import HTTPTestSupport
import HTTPTypes
import Larder
import SeededData
import TestOrigin
import TestSupport
import Testing

/// Encrypted bodies in files: decrypted on the event loop, elsewhere before the answer, and as the client takes them.
struct EncryptionTests {
    private static let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"one\""]

    /// Runs `body` with a client that has loaded the response, and its bytes.
    private func run(
        _ length: Int, memory: ByteCount = .mebibytes(32),
        _ body: (RawClient, Setting, ScriptedTransport, [UInt8]) async throws -> Void
    ) async throws {
        let bytes = SeededData.body(length, 1)
        let transport = ScriptedTransport { _ in .bytes(bytes, Self.fields) }
        try await withGateway(transport: transport, storeMemory: memory, encryption: Configuration.testKey) { setting in
            let client = try await setting.connect()
            try await #expect(client.exchange(get("/")).body == bytes)
            try await setting.store.perform { try $0.flush() }
            try await body(client, setting, transport, bytes)
            try? await client.close()
        }
    }

    @Test(arguments: [20_000, 400_000, 3_000_000]) func answersAreTheBytes(_ length: Int) async throws {
        try await run(length) { client, _, transport, bytes in
            for _ in 0..<4 {
                try await #expect(client.exchange(get("/")).body == bytes)
                try await client.send(get("/", "Range: bytes=100-19000"))
                let part = try await client.response()
                #expect(part.status == 206 && part.body == Array(bytes[100...19_000]))
                try await client.send(get("/", "Range: bytes=5-9,100-199"))
                let parts = try await client.response()
                #expect(parts.status == 206 && parts.body.count > 105)
                try await client.send(get("/", "If-None-Match: \"one\""))
                try await #expect(client.response().status == 304)
                try await client.send(get("/", method: "HEAD"))
                let head = try await client.response(to: "HEAD")
                #expect(head.status == 200 && head["Content-Length"] == "\(length)")
            }
            #expect(transport.requests.count == 1)
        }
    }

    /// What is not needed is not decrypted, if it is not to stay in memory: damage of the last bytes is not noticed.
    @Test(arguments: [400_000, 3_000_000]) func onlyWhatIsNeededIsDecrypted(_ length: Int) async throws {
        try await run(length, memory: .zero) { client, setting, transport, bytes in
            try TestFiles.flipByte(of: setting.bodyFile(), at: Int64(length))
            for _ in 0..<3 {
                try await client.send(get("/", "Range: bytes=0-199"))
                let part = try await client.response()
                #expect(part.status == 206 && part.body == Array(bytes[..<200]))
                try await client.send(get("/", "If-None-Match: \"one\""))
                try await #expect(client.response().status == 304)
                try await client.send(get("/", method: "HEAD"))
                try await #expect(client.response(to: "HEAD").status == 200)
            }
            #expect(transport.requests.count == 1)
            try await setting.store.perform { _ = try $0.check(repair: true) }
        }
    }

    @Test(arguments: [20_000, 400_000, 1 << 20], ["", "Range: bytes=5000-12000"])
    func damageIsAMiss(_ length: Int, _ range: String) async throws {
        try await run(length) { client, setting, transport, bytes in
            try TestFiles.flipByte(of: setting.bodyFile(), at: 9_000)
            try await client.send(range.isEmpty ? get("/") : get("/", range))
            let response = try await client.response()
            #expect(response.status == (range.isEmpty ? 200 : 206))
            #expect(response.body == (range.isEmpty ? bytes : Array(bytes[5_000...12_000])))
            #expect(transport.requests.count == 2)
            let again = try await setting.connect()
            try await #expect(again.exchange(get("/")).body == bytes)
            try await again.close()
        }
    }

    /// Of a body of which the store has a part.
    @Test(arguments: [300_000, 1 << 20]) func damageOfAPartIsAMiss(_ length: Int) async throws {
        let bytes = SeededData.body(length, 1)
        let transport = ScriptedTransport { request in
            var fields = Self.fields
            guard request.head.headerFields[.range] == "bytes=0-200000" else { return .bytes(bytes, fields) }
            fields[.contentRange] = "bytes 0-200000/\(length)"
            return .answer(HTTPResponse(status: .partialContent, headerFields: fields), Array(bytes[...200_000]))
        }
        try await withGateway(transport: transport, encryption: Configuration.testKey) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Range: bytes=0-200000"))
            try await #expect(client.response().status == 206)
            await setting.cache.drain()
            try await setting.store.perform { try $0.flush() }
            try TestFiles.flipByte(of: setting.bodyFile(), at: 300)
            try await client.send(get("/", "Range: bytes=0-99"))
            let part = try await client.response()
            #expect(part.status == 206 && part.body == Array(bytes[..<100]))
            let again = try await setting.connect()
            try await #expect(again.exchange(get("/")).body == bytes)
            try await again.close()
            try? await client.close()
        }
    }

    /// From the second request on a body is made ready in memory, also one that is never decrypted as a whole.
    @Test(arguments: [400_000, 3_000_000]) func hotBodiesStayInMemory(_ length: Int) async throws {
        try await run(length) { client, setting, transport, bytes in
            for _ in 0..<2 { try await #expect(client.exchange(get("/")).body == bytes) }
            try await setting.waitForSharedBody()
            // They are not looked at any more.
            try TestFiles.flipByte(of: setting.bodyFile(), at: 9_000)
            for _ in 0..<3 { try await #expect(client.exchange(get("/")).body == bytes) }
            #expect(transport.requests.count == 1)
            let tier = try await setting.store.perform { try $0.statistics().memoryTier }
            #expect(tier.hits >= 3 && tier.bytes >= ByteCount(length))
            try await setting.store.perform { _ = try $0.check(repair: true) }
        }
    }
}
