import HTTPTestSupport
import HTTPTypes
import Larder
import Logging
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import LarderServer

/// A body's file that another process cuts off, before and while it is sent.
struct BodyFileTests {
    /// More than the system's buffers hold at once.
    private static let length = 24 << 20

    @Test(arguments: ["HTTP/1.0", "HTTP/1.1"], ["", "Range: bytes=100-900000\r\n", "Range: bytes=500000-\r\n"])
    func isAMissBeforeItIsSent(_ version: String, _ range: String) async throws {
        let content = [UInt8](repeating: 7, count: 1 << 20)
        let transport = ScriptedTransport { _ in
            .answer(HTTPResponse(status: .ok, headerFields: fresh), content)
        }
        try await withGateway(transport: transport) { setting in
            try await #expect(exchange(setting.port, get("/")).body.count == content.count)
            try await setting.store.perform { try $0.flush() }
            try TestFiles.truncate(setting.bodyFile(), to: 900_000)
            for source in ["miss", "hit"] {
                let request = "GET / \(version)\r\nHost: example.org\r\nConnection: close\r\n\(range)\r\n"
                let response = try await exchange(setting.port, request)
                #expect(response.status == (range.isEmpty ? 200 : 206), "\(source)")
                #expect(response.body.allSatisfy { $0 == 7 })
            }
            #expect(transport.sent.count >= 2, "the origin was asked again")
        }
    }

    @Test func theAnswerThatHealsEndsTheConnection() async throws {
        let content = [UInt8](repeating: 7, count: 1 << 20)
        let transport = ScriptedTransport { _ in
            .answer(HTTPResponse(status: .ok, headerFields: fresh), content)
        }
        try await withGateway(transport: transport) { setting in
            try await #expect(exchange(setting.port, get("/")).body.count == content.count)
            try await setting.store.perform { try $0.flush() }
            try TestFiles.truncate(setting.bodyFile(), to: 1 << 19)
            let request = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
            for (field, reason) in [("close", "it met the damage"), (nil, "it is healed")] {
                let client = try await RawClient.connect(to: setting.port)
                let response = try await client.exchange(request)
                #expect(response.body.count == content.count)
                #expect(response["Connection"] == field, Comment(rawValue: reason))
                try await client.close()
            }
        }
    }

    @Test func endsTheConnectionWhileItIsSent() async throws {
        let messages = Mutex<[String]>([])
        try await withGateway(transport: SlowClientTests.transport(fresh)) {
            $0.logger = Logger(label: "test") { _ in Recorder { message in messages.withLock { $0.append(message) } } }
        } _: { setting in
            try await #expect(exchange(setting.port, get("/")).body.count == Self.length)
            try await setting.store.perform { try $0.flush() }
            let client = try SlowClient(port: setting.port)
            try client.send(get("/"))
            await #expect(client.read(1) == 1)
            await setting.settles()
            try TestFiles.truncate(setting.bodyFile(), to: 20_000_000)
            let reader = Task { await client.read(Self.length * 2) }
            await setting.ticks { await setting.gateway.readCounters().openConnections == 0 }
            await #expect(reader.value < Self.length)
            #expect(messages.withLock { $0 }.filter { $0.contains("became shorter") }.count == 1)
            try await #expect(exchange(setting.port, get("/")).body.count == Self.length, "it is asked for again")
        }
    }
}
