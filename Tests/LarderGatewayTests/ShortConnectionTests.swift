import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import SeededData
import TestOrigin
import TestSupport
import Testing

/// A connection ends behind the answer to a request that asks for that, whichever way the answer takes.
struct ShortConnectionTests {
    /// In the index, copied from memory, sent from memory, and over TLS as the client takes it.
    private static let lengths = [0, 1_000, 10_000, 50_000, 400_000]

    private static let transport = ScriptedTransport { request in
        .bytes(body(Int(request.head.path?.dropFirst() ?? "") ?? 0, 1), [.cacheControl: "max-age=60"])
    }

    @Test(arguments: [false, true]) func hitsOfEveryLength(isSecure: Bool) async throws {
        try await withTLS(Self.transport) { setting, port in
            func connect() async throws -> RawClient {
                isSecure ? try await RawClient.connectSecurely(to: port) : try await setting.connect()
            }
            for length in Self.lengths {
                let before = try await setting.store.perform { try $0.statistics().memoryTier.count }
                let open = try await connect()
                for value in ["keep-alive", "keep-alive", "close"] {
                    _ = try await open.exchange(get("/\(length)", "Connection: \(value)"))
                    try await setting.store.perform { try $0.flush() }
                }
                if length > 9_000 {
                    try await waitWhile {
                        try await setting.store.perform { try $0.statistics().memoryTier.count } == before
                    }
                }
                let client = try await connect()
                // What follows is not answered (RFC 9112 section 9.6).
                try await client.send(get("/\(length)", "Connection: close") + get("/1"))
                let response = try await client.response()
                #expect(response["Connection"] == "close")
                #expect(response["Cache-Status"]?.contains("hit") == true)
                #expect(response.body == body(length, 1))
                try await #expect(client.rest().isEmpty)
            }
        }
    }

    /// As `printf 'GET ...' | nc -N` does: more is on its way than the system takes at once.
    @Test(arguments: ["", "Connection: close"]) func aClientThatEndsItsSideGetsAllOfALongAnswer(field: String)
        async throws
    {
        let length = 12 << 20
        try await withGateway(transport: Self.transport) { setting in
            for _ in 0..<2 {
                let client = try await setting.connect()
                try await client.send(field.isEmpty ? get("/\(length)") : get("/\(length)", field))
                try await client.finishSending()
                let received = try await client.response().body
                #expect(received.count == length && received == body(length, 1))
                try await #expect(client.rest().isEmpty)
                await setting.cache.drain()
            }
            await #expect(setting.gateway.readCounters().clientAborts == 0)
        }
    }
}
