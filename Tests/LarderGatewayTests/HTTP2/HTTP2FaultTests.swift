import HTTPTestSupport
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

/// What a client does against the protocol ends the stream, or the connection, with the right error (RFC 9113).
struct HTTP2FaultTests {
    private typealias Client = RawHTTP2Client

    /// What a client sends, and the error that it gets.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        /// 0 for the connection.
        let stream: Int
        let code: Int

        init(_ text: String, _ parts: [UInt8]..., stream: Int = 0, code: Int) {
            testDescription = text
            bytes = parts.flatMap { $0 }
            self.stream = stream
            self.code = code
        }
    }

    private static let protocolError = 1
    private static let flowControlError = 3
    private static let streamClosed = 5
    private static let frameSizeError = 6
    private static let refusedStream = 7
    private static let compressionError = 9
    private static let enhanceYourCalm = 11

    private static let priority: UInt8 = 2
    private static let continuation: UInt8 = 9

    /// A head whose answer does not come: its origin is asked and does not answer.
    private static func open(_ stream: Int, end: Bool = true) -> [UInt8] {
        Client.request(stream, "GET", "/held", end: end)
    }

    static let faults = [
        Fault("DATA for no stream", Client.data(0, "a"), code: protocolError),
        Fault("DATA for an idle stream", Client.data(3, "a"), code: protocolError),
        Fault("DATA behind the end", open(1), Client.data(1, "a"), stream: 1, code: streamClosed),
        Fault(
            "DATA with too much padding", open(1, end: false), Client.frame(0, 8, 1, [5, 1, 2, 3]), code: protocolError),
        Fault("HEADERS behind the end", open(1), open(1), stream: 1, code: streamClosed),
        Fault(
            "trailers without the end", open(1, end: false), Client.head(1, [("a", "b")], end: false), stream: 1,
            code: protocolError),
        Fault(
            "trailers with a pseudo-header field", open(1, end: false), Client.head(1, [(":path", "/")]), stream: 1,
            code: protocolError),
        Fault("HEADERS of an even stream", Client.request(2), code: protocolError),
        Fault("HEADERS of an earlier stream", open(5), open(3), code: protocolError),
        Fault(
            "HEADERS that depend on themselves", Client.frame(1, 0x25, 1, [0, 0, 0, 1, 0, 0x82]), stream: 1,
            code: protocolError),
        Fault("HEADERS with a bad index", Client.frame(1, 5, 1, [0xFF, 0x7F]), code: compressionError),
        Fault("HEADERS with index 0", Client.frame(1, 5, 1, [0x80]), code: compressionError),
        Fault("HEADERS that grow the table", Client.frame(1, 5, 1, [0x3F, 0xFF, 0xFF, 0x7F]), code: compressionError),
        Fault("a frame within a head", Client.frame(1, 1, 1, [0x82]), Client.grow(0, by: 1), code: protocolError),
        Fault(
            "CONTINUATION of another stream", Client.frame(1, 1, 1, [0x82]), Client.frame(continuation, 4, 3, []),
            code: protocolError),
        Fault("CONTINUATION without a head", Client.frame(continuation, 4, 1, []), code: protocolError),
        Fault(
            "CONTINUATION without an end", Client.frame(1, 1, 1, []),
            (0..<100).flatMap { _ in Client.frame(continuation, 0, 1, []) }, code: enhanceYourCalm),
        Fault("PRIORITY for no stream", Client.frame(priority, 0, 0, [0, 0, 0, 1, 0]), code: protocolError),
        Fault(
            "PRIORITY of a wrong length", open(1), Client.frame(priority, 0, 1, [0, 0, 0, 3]), stream: 1,
            code: frameSizeError),
        Fault(
            "PRIORITY that depends on itself", open(1), Client.frame(priority, 0, 1, [0, 0, 0, 1, 0]), stream: 1,
            code: protocolError),
        Fault("RST_STREAM for no stream", Client.frame(Client.reset, 0, 0, [0, 0, 0, 8]), code: protocolError),
        Fault("RST_STREAM for an idle stream", Client.frame(Client.reset, 0, 1, [0, 0, 0, 8]), code: protocolError),
        Fault(
            "RST_STREAM of a wrong length", open(1), Client.frame(Client.reset, 0, 1, [0, 0, 8]), code: frameSizeError),
        Fault(
            "DATA behind RST_STREAM", open(1, end: false), Client.frame(Client.reset, 0, 1, [0, 0, 0, 8]),
            Client.data(1, "a"), code: streamClosed),
        Fault("SETTINGS of a stream", Client.frame(Client.settings, 0, 1, []), code: protocolError),
        Fault(
            "SETTINGS of a wrong length", Client.frame(Client.settings, 0, 0, [0, 4, 0, 0, 0]), code: frameSizeError),
        Fault(
            "an acknowledgement with content", Client.frame(Client.settings, 1, 0, [0, 4, 0, 0, 0, 0]),
            code: frameSizeError),
        Fault("ENABLE_PUSH of 2", Client.frame(Client.settings, 0, 0, [0, 2, 0, 0, 0, 2]), code: protocolError),
        Fault(
            "a window over the limit", Client.frame(Client.settings, 0, 0, [0, 4, 0x80, 0, 0, 0]),
            code: flowControlError),
        Fault(
            "frames that are too short", Client.frame(Client.settings, 0, 0, [0, 5, 0, 0, 0x3F, 0xFF]),
            code: protocolError),
        Fault(
            "frames that are too long", Client.frame(Client.settings, 0, 0, [0, 5, 1, 0, 0, 0]), code: protocolError),
        Fault("PUSH_PROMISE", open(1), Client.frame(5, 4, 1, [0, 0, 0, 2, 0x82]), code: protocolError),
        Fault(
            "PING of a stream", Client.frame(Client.ping, 0, 1, [UInt8](repeating: 0, count: 8)), code: protocolError),
        Fault("PING of a wrong length", Client.frame(Client.ping, 0, 0, [0]), code: frameSizeError),
        Fault(
            "GOAWAY of a stream", Client.frame(Client.goAway, 0, 1, [UInt8](repeating: 0, count: 8)),
            code: protocolError),
        Fault("GOAWAY of a wrong length", Client.frame(Client.goAway, 0, 0, [0]), code: frameSizeError),
        Fault("WINDOW_UPDATE of 0", Client.grow(0, by: 0), code: protocolError),
        Fault("WINDOW_UPDATE of 0 for a stream", open(1), Client.grow(1, by: 0), stream: 1, code: protocolError),
        Fault("WINDOW_UPDATE for an idle stream", Client.grow(1, by: 1), code: protocolError),
        Fault(
            "WINDOW_UPDATE of a wrong length", Client.frame(Client.windowUpdate, 0, 0, [0, 0, 1]),
            code: frameSizeError),
        Fault("WINDOW_UPDATE over the limit", Client.grow(0, by: 0x7FFF_FFFF), code: flowControlError),
        Fault(
            "WINDOW_UPDATE over the limit for a stream", open(1), Client.grow(1, by: 0x7FFF_FFFF), stream: 1,
            code: flowControlError),
        Fault(
            "a larger window over the limit", open(1), Client.grow(1, by: 0x7FFF_0000),
            Client.frame(Client.settings, 0, 0, [0, 4, 0, 1, 0xFF, 0xFF]), code: flowControlError),
        Fault(
            "a frame over the limit", Client.frame(200, 0, 0, [UInt8](repeating: 0, count: 16_385)),
            code: frameSizeError),
        Fault(
            "more streams than announced",
            (0..<9).flatMap { open(2 * $0 + 1) }, stream: 17, code: refusedStream),
        Fault(
            "more content than the windows allow", open(1, end: false),
            (0..<20).flatMap { _ in Client.frame(0, 0, 1, [UInt8](repeating: 0, count: 16_000)) }, stream: 1,
            code: flowControlError),
    ]

    @Test(arguments: faults) func eachFaultHasItsError(_ fault: Fault) async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            try? await gate.wait()
            return .text("late")
        }
        try await withTLS(transport, { $0.limits.streams = 8 }) { setting, port in
            let client = try await Client.connect(to: port)
            try await client.settle()
            try await client.send(fault.bytes)
            let type = fault.stream == 0 ? Client.goAway : Client.reset
            let answer = try await client.next { $0.type == type && $0.stream == fault.stream }
            #expect(answer?.code == fault.code)
            if fault.stream == 0 {
                // The connection ends, and answers nothing else.
                try await #expect(!client.rest().contains { $0.type <= 1 })
            } else {
                try await client.settle()
                await client.close()
            }
            gate.open()
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
        }
    }

    /// Settings come first (section 3.4).
    @Test func settingsComeFirst() async throws {
        try await withTLS(ScriptedTransport { _ in .text("a") }) { setting, port in
            let client = try await Client.connect(to: port, hasSettings: false)
            try await client.send(Client.request(1))
            try await #expect(client.next { $0.type == Client.goAway }?.code == Self.protocolError)
            try await setting.waitForConnections(0)
        }
    }

    /// What comes late for a stream that the gateway has reset is passed over (section 5.1).
    @Test func whatComesLateForAResetStreamIsPassedOver() async throws {
        try await withTLS(ScriptedTransport { _ in .text("hello") }) { setting, port in
            let client = try await Client.connect(to: port)
            try await client.send(Client.head(1, [(":method", "GET"), ("connection", "close")], end: false))
            try await #expect(client.answer(1)?.code == Self.protocolError)
            try await client.send(
                Client.data(1, "late"), Client.grow(1, by: 5), Client.frame(Client.reset, 0, 1, [0, 0, 0, 8]),
                Client.head(1, [("a", "b")]))
            try await client.send(Client.request(3))
            try await #expect(client.content(3) == Array("hello".utf8))
            await client.close()
        }
    }

    /// Unknown frames, and priorities, say nothing (sections 5.3.2 and 5.5).
    @Test func whatIsNotKnownIsPassedOver() async throws {
        try await withTLS(ScriptedTransport { _ in .text("hello") }) { setting, port in
            let client = try await Client.connect(to: port)
            try await client.send(
                Client.frame(200, 255, 1, [1, 2, 3]), Client.frame(Self.priority, 0, 1, [0, 0, 0, 3, 7]),
                Client.frame(Client.settings, 0, 0, [0, 99, 1, 2, 3, 4]), Client.request(1))
            try await #expect(client.content(1) == Array("hello".utf8))
            await client.close()
        }
    }

    /// Padding is not content, and takes a part of the window (section 6.1), which is given back.
    @Test func paddingIsNotContent() async throws {
        let origin = try await TestOrigin.start { .ok("\($0.text.count)") }
        let transport = NIOTransport()
        try await withTLS(transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } _: { setting, port in
            let client = try await Client.connect(to: port)
            try await client.send(Client.request(1, "POST", "/", end: false))
            let padding = [UInt8](repeating: 0, count: 255)
            // More than a window in all, and less than one at a time.
            for _ in 0..<6 {
                for _ in 0..<150 {
                    try await client.send(Client.frame(0, 8, 1, [255] + Array("a".utf8) + padding))
                }
                _ = try await client.next { $0.type == Client.windowUpdate && $0.stream == 1 }
            }
            try await client.send(Client.frame(0, 9, 1, [0]))
            try await #expect(client.content(1) == Array("900".utf8))
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }
}
