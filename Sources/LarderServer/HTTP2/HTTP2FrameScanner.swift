import NIOCore

/// Finds the frames in one direction of a connection (RFC 9113 section 4.1), in whatever pieces the bytes come.
struct HTTP2FrameScanner {
    /// Types of frames, as far as they matter here.
    enum FrameType: UInt8 {
        case data = 0
        case headers = 1
        case reset = 3
        case settings = 4
        case goAway = 7
        case windowUpdate = 8
    }

    struct Frame {
        var type: FrameType
        var flags: UInt8
        var stream: Int
        /// Of the payload, in bytes.
        var length: Int
        /// Empty for DATA and HEADERS.
        var payload: [UInt8] = []

        /// Four bytes of the payload.
        func number(at index: Int) -> Int? {
            guard index + 4 <= payload.count else { return nil }
            return payload[index..<index + 4].reduce(0) { $0 << 8 | Int($1) }
        }
    }

    /// Bytes to pass over.
    private var skip: Int
    private var head: [UInt8] = []
    /// A frame whose payload is incomplete.
    private var open: Frame?

    /// Longer payloads are passed over: of the frames whose payload counts none is as long, as the gateway takes no
    /// larger frames, and makes none.
    private static let longest = 16_384

    /// - Parameter skip: bytes before the first frame: a client begins with a preface (RFC 9113 section 3.4).
    init(skip: Int) {
        self.skip = skip
        head.reserveCapacity(9)
    }

    /// Calls `found` with each frame of a type that matters: DATA and HEADERS when their heads have come, others when
    /// they are complete.
    mutating func scan(_ bytes: UnsafeRawBufferPointer, _ found: (Frame) -> Void) {
        var position = 0
        while position < bytes.count {
            let left = bytes.count - position
            if skip > 0 {
                let count = min(skip, left)
                skip -= count
                position += count
            } else if let frame = open {
                let count = min(frame.length - frame.payload.count, left)
                open?.payload.append(contentsOf: bytes[position..<position + count])
                position += count
                close(found)
            } else {
                let count = min(9 - head.count, left)
                head.append(contentsOf: bytes[position..<position + count])
                position += count
                if head.count == 9 { begin(found) }
            }
        }
    }

    private mutating func begin(_ found: (Frame) -> Void) {
        defer { head.removeAll(keepingCapacity: true) }
        let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
        guard let type = FrameType(rawValue: head[3]) else { return skip = length }
        let stream = (Int(head[5]) << 24 | Int(head[6]) << 16 | Int(head[7]) << 8 | Int(head[8])) & 0x7FFF_FFFF
        let frame = Frame(type: type, flags: head[4], stream: stream, length: length)
        let hasPayload = type != .data && type != .headers
        if !hasPayload || length > Self.longest {
            skip = length
            if !hasPayload { found(frame) }
        } else {
            open = frame
            close(found)
        }
    }

    private mutating func close(_ found: (Frame) -> Void) {
        guard let frame = open, frame.payload.count == frame.length else { return }
        open = nil
        found(frame)
    }
}

/// Shows the connection the frames that go by, both ways.
final class HTTP2FrameObserver: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private let connection: HTTP2Connection
    private var inbound = HTTP2FrameScanner(skip: 24)
    private var outbound = HTTP2FrameScanner(skip: 0)

    init(_ connection: HTTP2Connection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            inbound.scan(bytes) { connection.received($0) }
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .byteBuffer(let buffer) = unwrapOutboundIn(data) {
            buffer.withUnsafeReadableBytes { bytes in outbound.scan(bytes) { connection.wrote($0) } }
        }
        context.write(data, promise: promise)
    }
}
