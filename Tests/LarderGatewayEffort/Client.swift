import HTTPTestSupport
import NIOCore
import NIOSSL

/// One connection to the gateway, on which requests are sent one after the other.
final class Client {
    struct UnexpectedAnswer: Error { let description: String }

    private let connection: RawClient
    private let usesHTTP2: Bool
    private var stream: UInt32 = 1

    private init(_ connection: RawClient, usesHTTP2: Bool) {
        self.connection = connection
        self.usesHTTP2 = usesHTTP2
    }

    static func connect(_ kind: RequestPath.Connection, _ ports: GatewayPorts) async throws -> Client {
        if kind == .plain { return Client(try await RawClient.connect(to: ports.plain), usesHTTP2: false) }
        if kind == .holding { return Client(try await RawClient.connect(to: ports.holding), usesHTTP2: false) }
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = kind == .http2 ? ["h2"] : ["http/1.1"]
        let context = try NIOSSLContext(configuration: configuration)
        let connection = try await RawClient.connect(to: ports.tls) { channel in
            try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
        }
        if kind == .http2 { try await connection.send(HTTP2Frames.preface) }
        return Client(connection, usesHTTP2: kind == .http2)
    }

    func close() async throws { try await connection.close() }

    /// Sends requests for all of what the path asks for a part of, or for no more where only that is stored, until the
    /// answer is a hit: the first ones may come while it is being stored.
    func fill(_ path: RequestPath) async throws {
        var whole = path
        whole.method = "GET"
        if !path.isPart { whole.fields.removeAll { !$0.hasPrefix("Accept-Encoding") } }
        if usesHTTP2 {
            // Its answers are not read that closely; the requests that warm up follow.
            return try await exchangeHTTP2(path.target, length: path.length)
        }
        for _ in 0..<10_000 {
            if try await connection.exchange(whole.request(0))["Cache-Status"]?.contains("; hit") == true { return }
        }
        throw UnexpectedAnswer(description: "\(path.name): it is not stored")
    }

    /// Sends a request, and takes its answer, which is what the path says.
    func exchange(_ path: RequestPath, _ number: Int) async throws {
        guard !usesHTTP2 else { return try await exchangeHTTP2(path.target(number), length: path.length) }
        let response = try await connection.exchange(path.request(number))
        guard response.status == path.status, response.body.count == path.length,
            response["Cache-Status"]?.contains("; hit") == path.isHit
        else {
            throw UnexpectedAnswer(
                description: "\(path.name): \(response.statusLine), \(response.body.count) bytes, \(response.fields)")
        }
    }

    private func exchangeHTTP2(_ target: String, length: Int) async throws {
        try await connection.send(HTTP2Frames.get(target, stream: stream))
        var received = 0
        while true {
            let head = try await connection.bytes(9)
            let payload = try await connection.bytes(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
            let (type, flags) = (head[3], head[4])
            if type == HTTP2Frames.data { received += payload.count }
            // What the gateway says about itself is acknowledged as it comes.
            if type == HTTP2Frames.settings, flags & 1 == 0 {
                try await connection.send(HTTP2Frames.settingsAcknowledged)
            }
            if type == HTTP2Frames.goAway || type == HTTP2Frames.reset {
                throw UnexpectedAnswer(description: "\(target): a frame of type \(type): \(payload)")
            }
            // END_STREAM
            if type == HTTP2Frames.data || type == HTTP2Frames.headers, flags & 1 == 1 { break }
        }
        guard received == length else {
            throw UnexpectedAnswer(description: "\(target): \(received) bytes in stream \(stream)")
        }
        stream += 2
    }
}

/// Frames of HTTP/2 (RFC 9113 section 4), as far as a client that only asks needs them.
enum HTTP2Frames {
    static let (data, headers, reset, settings, goAway): (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 1, 3, 4, 7)

    /// The preface, SETTINGS, and a window of the connection that is never used up.
    static let preface =
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(settings, flags: 0, stream: 0, [])
        + frame(8, flags: 0, stream: 0, bytes(0x7FFF_FFFF - 65_535))

    static let settingsAcknowledged = frame(settings, flags: 1, stream: 0, [])

    /// HEADERS of a GET that ends its stream, with no use of HPACK's tables (RFC 7541 section 6.2.2).
    static func get(_ path: String, stream: UInt32) -> [UInt8] {
        // :method GET, :scheme https, :path, :authority; names by their place in the static table.
        frame(headers, flags: 5, stream: stream, [0x82, 0x87, 0x04] + text(path) + [0x01] + text("example.org"))
    }

    private static func text(_ value: String) -> [UInt8] { [UInt8(value.utf8.count)] + value.utf8 }

    private static func frame(_ type: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        Array(bytes(UInt32(payload.count)).dropFirst()) + [type, flags] + bytes(stream) + payload
    }

    private static func bytes(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
