import NIOCore
import NIOPosix
import NIOSSL

/// An HTTP/2 connection of a test over TLS that sends any frames, proper or not, and shows those that arrive.
///
/// By itself it sends only the preface, its settings and their acknowledgement. One task uses it at a time.
final class RawHTTP2Client {
    /// RFC 9113 section 4.1.
    struct Frame: Sendable {
        var type: UInt8
        var flags: UInt8
        var stream: Int
        var payload: [UInt8]

        /// END_STREAM of HEADERS and DATA.
        var isEnd: Bool { type <= 1 && flags & 1 == 1 }
        /// The error code of RST_STREAM or GOAWAY.
        var code: Int { payload[(type == 7 ? 4 : 0)..<(type == 7 ? 8 : 4)].reduce(0) { $0 << 8 | Int($1) } }
        /// The status, of a connection's first answer at least: later ones may lie in the table of its compression.
        var status: Int { type == 1 ? RawHTTP2Client.status(payload) : 0 }
    }

    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8

    private let channel: any Channel
    private var source: AsyncThrowingStream<[UInt8], any Error>.AsyncIterator
    private var held: [UInt8] = []
    private var pings: UInt8 = 0
    /// Frames that came while another was waited for.
    private var passed: [Frame] = []
    /// Streams that ended with a head.
    private var ended: Set<Int> = []

    private init(_ channel: any Channel, _ source: AsyncThrowingStream<[UInt8], any Error>) {
        self.channel = channel
        self.source = source.makeAsyncIterator()
    }

    /// Connects and sends preface and settings.
    /// - Parameters:
    ///   - window: SETTINGS_INITIAL_WINDOW_SIZE; nil leaves it at 65,535.
    ///   - hasSettings: whether settings are sent at all.
    static func connect(
        to port: Int, window: Int? = nil, hasSettings: Bool = true,
        _ change: (inout TLSConfiguration) -> Void = { _ in }
    ) async throws -> RawHTTP2Client {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.applicationProtocols = ["h2"]
        change(&tls)
        let context = try NIOSSLContext(configuration: tls)
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: [UInt8].self, throwing: (any Error).self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                    try pipeline.addHandler(Feed(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let client = RawHTTP2Client(channel, stream)
        var settings: [UInt8] = []
        if let window { settings = [0, 4] + bytes(window) }
        try await client.send(
            Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8),
            hasSettings ? frame(Self.settings, 0, 0, settings) : [])
        return client
    }

    // MARK: Sending

    func send(_ parts: [UInt8]...) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: parts.flatMap { $0 })).get()
    }

    /// Returns when the gateway has read everything that was sent.
    func settle() async throws {
        pings += 1
        let number = pings
        try await send(Self.frame(Self.ping, 0, 0, [UInt8](repeating: number, count: 8)))
        _ = try await next { $0.type == Self.ping && $0.payload.first == number }
    }

    /// Stops or continues taking bytes from the socket.
    func setReading(_ isReading: Bool) async throws { try await channel.setOption(.autoRead, value: isReading).get() }

    func close() async { try? await channel.close().get() }

    /// Closes with a reset of the connection, past TLS.
    func reset() async throws {
        try await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try await channel.eventLoop.submit { [channel] in
            try channel.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self).close(promise: nil)
        }.get()
        try? await channel.closeFuture.get()
    }

    // MARK: Receiving

    /// The next frame; nil at the end of the connection. Acknowledges settings.
    func frame() async throws -> Frame? {
        if !passed.isEmpty { return passed.removeFirst() }
        return try await arriving()
    }

    private func arriving() async throws -> Frame? {
        while true {
            if held.count >= 9 {
                let length = Int(held[0]) << 16 | Int(held[1]) << 8 | Int(held[2])
                if held.count >= 9 + length {
                    let stream = held[5..<9].reduce(0) { $0 << 8 | Int($1) }
                    let frame = Frame(
                        type: held[3], flags: held[4], stream: stream, payload: Array(held[9..<9 + length]))
                    held.removeFirst(9 + length)
                    if frame.type == Self.headers, frame.isEnd { ended.insert(stream) }
                    if frame.type == Self.settings, frame.flags & 1 == 0 {
                        try? await send(Self.frame(Self.settings, 1, 0, []))
                    }
                    return frame
                }
            }
            guard let bytes = try await source.next() else { return nil }
            held += bytes
        }
    }

    /// The next frame that is meant; the others stay for later.
    func next(where isMeant: (Frame) -> Bool) async throws -> Frame? {
        if let index = passed.firstIndex(where: isMeant) { return passed.remove(at: index) }
        while let frame = try await arriving() {
            if isMeant(frame) { return frame }
            passed.append(frame)
        }
        return nil
    }

    /// The head of a stream's final answer, or the frame that resets it.
    func answer(_ stream: Int) async throws -> Frame? {
        try await next {
            $0.stream == stream && ($0.type == Self.reset || ($0.type == Self.headers && $0.status != 100))
        }
    }

    /// The content of a stream, up to its end; nil if the stream is reset.
    func content(_ stream: Int) async throws -> [UInt8]? {
        if ended.contains(stream) { return [] }
        var content: [UInt8] = []
        while let frame = try await next(where: {
            $0.stream == stream && ($0.type == Self.data || $0.type == Self.reset)
        }) {
            guard frame.type == Self.data else { return nil }
            content += frame.payload
            if frame.isEnd { return content }
        }
        return nil
    }

    /// The next `count` bytes of content, of any stream, or those up to the end of the connection.
    func data(_ count: Int) async throws -> [UInt8] {
        var content: [UInt8] = []
        while content.count < count, let frame = try await next(where: { $0.type == Self.data }) {
            content += frame.payload
        }
        return content
    }

    /// All frames up to the end of the connection.
    func rest() async throws -> [Frame] {
        var frames: [Frame] = []
        while let frame = try? await frame() { frames.append(frame) }
        return frames
    }

    // MARK: Frames

    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ payload: [UInt8]) -> [UInt8] {
        [UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 255), UInt8(payload.count & 255), type, flags]
            + bytes(stream) + payload
    }

    /// A request's head. Long ones continue in CONTINUATION.
    static func request(
        _ stream: Int, _ method: String = "GET", _ path: String = "/", _ fields: [(String, String)] = [],
        authority: String = "example.org", end: Bool = true
    ) -> [UInt8] {
        head(
            stream,
            [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)] + fields, end: end)
    }

    static func head(_ stream: Int, _ fields: [(String, String)], end: Bool = true) -> [UInt8] {
        let block = fields.flatMap { field -> [UInt8] in [UInt8(0)] + text(field.0) + text(field.1) }
        var result: [UInt8] = []
        for start in stride(from: 0, to: max(1, block.count), by: 16_384) {
            let ending: UInt8 = start == 0 && end ? 1 : 0
            let piece = Array(block[start..<min(start + 16_384, block.count)])
            let isLast: UInt8 = start + 16_384 >= block.count ? 4 : 0
            result += frame(start == 0 ? headers : 9, ending | isLast, stream, piece)
        }
        return result
    }

    static func data(_ stream: Int, _ text: String, end: Bool = false) -> [UInt8] {
        frame(data, end ? 1 : 0, stream, Array(text.utf8))
    }

    static func grow(_ stream: Int, by count: Int) -> [UInt8] { frame(windowUpdate, 0, stream, bytes(count)) }

    private static func bytes(_ number: Int) -> [UInt8] {
        [UInt8(number >> 24 & 255), UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    }

    /// A string without Huffman coding (RFC 7541 section 5.2).
    private static func text(_ text: String) -> [UInt8] {
        var length = text.utf8.count
        guard length >= 127 else { return [UInt8(length)] + Array(text.utf8) }
        var result: [UInt8] = [127]
        length -= 127
        while length >= 128 {
            result.append(UInt8(length & 127) | 128)
            length >>= 7
        }
        return result + [UInt8(length)] + Array(text.utf8)
    }

    /// The status at the start of a field block, behind what changes the table (RFC 7541 sections 6.1 to 6.3, appendix
    /// A).
    private static func status(_ whole: [UInt8]) -> Int {
        let block = Array(whole.drop { $0 & 0xE0 == 0x20 })
        guard let first = block.first else { return 0 }
        let known = [200, 204, 206, 304, 400, 404, 500]
        if first & 0x80 != 0 { return 8...14 ~= first & 0x7F ? known[Int(first & 0x7F) - 8] : 0 }
        guard block.count > 2 else { return 0 }
        let value = block[2..<min(block.count, 2 + Int(block[1] & 0x7F))]
        if block[1] & 0x80 == 0 { return Int(String(decoding: value, as: UTF8.self)) ?? 0 }
        // The Huffman codes of digits: 0 to 2 have five bits, 3 to 9 six.
        var bits = value.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } << UInt64(64 - 8 * value.count)
        var number = 0
        for _ in 0..<3 {
            let isShort = bits >> 59 < 3
            number = number * 10 + Int(isShort ? bits >> 59 : (bits >> 58) - 22)
            bits <<= isShort ? 5 : 6
        }
        return number
    }
}

/// Hands on what arrives.
private final class Feed: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let continuation: AsyncThrowingStream<[UInt8], any Error>.Continuation

    init(_ continuation: AsyncThrowingStream<[UInt8], any Error>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        continuation.yield(Array(unwrapInboundIn(data).readableBytesView))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { continuation.finish(throwing: error) }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
}
