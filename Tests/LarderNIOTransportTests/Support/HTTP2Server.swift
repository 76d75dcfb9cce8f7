import LarderNIOTransport
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import NIOTLS
import Locks
import TestSupport

/// A server that speaks HTTP/2 over TLS, and does with each stream what a script says.
struct HTTP2Server: Sendable {
    typealias Script = @Sendable (inout HTTP2Peer) async throws -> Void

    let port: Int
    private let listener: any Channel
    private let connectionCount: Counter

    /// Connections that were accepted.
    var connections: Int { connectionCount.value }
    var authority: String { "127.0.0.1:\(port)" }
    var endpoint: NIOTransport.Endpoint { .init(host: "127.0.0.1", port: port, isTLS: true) }

    /// Refuses connections from now on; those that there are stay.
    func stopListening() async throws { try await listener.close() }

    /// Runs a server while `body` runs. A stream whose script ends is left as it is.
    /// - Parameter streams: how many streams a connection may have at once.
    static func run<Result: Sendable>(
        streams: Int = 100, window: Int = 65_535, script: @escaping Script,
        _ body: (HTTP2Server) async throws -> Result
    ) async throws -> Result {
        let tls = try TestCertificate.address.server { $0.applicationProtocols = ["h2"] }
        let counter = Counter()
        let open = Mutex<(channels: [any Channel], tasks: [Task<Void, Never>])>(([], []))
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                let index = counter.increment() - 1
                open.withLock { $0.channels.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: tls))
                    var settings = NIOHTTP2Handler.ConnectionConfiguration()
                    settings.initialSettings = [
                        HTTP2Setting(parameter: .maxConcurrentStreams, value: streams),
                        HTTP2Setting(parameter: .initialWindowSize, value: window),
                    ]
                    settings.headerBlockValidation = .disabled
                    settings.contentLengthValidation = .disabled
                    _ = try pipeline.configureHTTP2Pipeline(
                        mode: .server, connectionConfiguration: settings, streamConfiguration: .init()
                    ) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            let (frames, continuation) = AsyncStream.makeStream(of: HTTP2Frame.FramePayload.self)
                            try stream.pipeline.syncOperations.addHandler(FrameHandler(continuation))
                            let peer = HTTP2Peer(index, channel, stream, frames)
                            let task = Task {
                                var peer = peer
                                try? await script(&peer)
                            }
                            open.withLock { $0.tasks.append(task) }
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let server = HTTP2Server(
            port: listener.localAddress?.port ?? 0, listener: listener, connectionCount: counter)
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(server))
        } catch {
            result = .failure(error)
        }
        try? await server.stopListening()
        let (channels, tasks) = open.withLock { $0 }
        for channel in channels { channel.close(promise: nil) }
        for task in tasks {
            task.cancel()
            // Once `body` has failed, a script may wait for what no longer comes.
            if case .success = result { await task.value }
        }
        return try result.get()
    }
}

/// The server's end of a stream, for a script.
struct HTTP2Peer: Sendable {
    struct Ended: Error {}

    /// Which connection of the server this is, from 0.
    let index: Int
    private let connection: any Channel
    private let stream: any Channel
    private let frames: AsyncStream<HTTP2Frame.FramePayload>

    init(
        _ index: Int, _ connection: any Channel, _ stream: any Channel, _ frames: AsyncStream<HTTP2Frame.FramePayload>
    ) {
        self.index = index
        self.connection = connection
        self.stream = stream
        self.frames = frames
    }

    /// The head of the request, and whether it is all.
    func head() async throws -> (fields: HPACKHeaders, isEnd: Bool) {
        guard case .headers(let headers) = try await frame() else { throw Ended() }
        return (headers.headers, headers.endStream)
    }

    /// All of the content.
    func content() async throws -> [UInt8] {
        var result: [UInt8] = []
        while true {
            guard case .data(let data) = try await frame(), case .byteBuffer(let bytes) = data.data else {
                throw Ended()
            }
            result += bytes.readableBytesView
            if data.endStream { return result }
        }
    }

    /// Returns when the client has ended the stream.
    func ended() async { while (try? await frame()) != nil {} }

    func respond(_ fields: HPACKHeaders, isEnd: Bool = false) async throws {
        try await stream.writeAndFlush(HTTP2Frame.FramePayload.headers(.init(headers: fields, endStream: isEnd)))
    }

    /// A whole response.
    func answer(_ text: String) async throws {
        try await respond([":status": "200", "content-length": "\(text.utf8.count)"])
        try await write(Array(text.utf8), isEnd: true)
    }

    /// Returns when the system has taken the bytes.
    func write(_ bytes: [UInt8], isEnd: Bool = false) async throws {
        try await stream.writeAndFlush(
            HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(ByteBuffer(bytes: bytes)), endStream: isEnd)))
    }

    func reset(_ code: HTTP2ErrorCode) async throws {
        try await stream.writeAndFlush(HTTP2Frame.FramePayload.rstStream(code))
    }

    /// Says that streams behind `last` are not processed.
    func goAway(last: Int, _ code: HTTP2ErrorCode = .noError) async throws {
        try await connection.writeAndFlush(
            HTTP2Frame(
                streamID: .rootStream,
                payload: .goAway(lastStreamID: HTTP2StreamID(last), errorCode: code, opaqueData: nil)))
    }

    func closeConnection() { connection.close(promise: nil) }

    private func frame() async throws -> HTTP2Frame.FramePayload {
        while true {
            var iterator = frames.makeAsyncIterator()
            guard let next = await iterator.next() else { throw Ended() }
            switch next {
            case .headers, .data: return next
            default: continue
            }
        }
    }
}

private final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    private let continuation: AsyncStream<HTTP2Frame.FramePayload>.Continuation
    init(_ continuation: AsyncStream<HTTP2Frame.FramePayload>.Continuation) { self.continuation = continuation }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { continuation.finish() }
}
