import LarderHTTP
import NIOCore
import NIOHTTP2

/// A connection that speaks HTTP/2 (RFC 9113), as the tasks see it: each request is a stream of it.
final class HTTP2Session: Sendable {
    /// What a stream may receive before its reader takes it, and what of it one read may bring.
    private static let windowBytes = 256 << 10
    /// What the connection may receive before the transport has read it.
    private static let connectionWindowBytes = 1 << 20

    let endpoint: NIOTransport.Endpoint
    let channel: any Channel
    /// Streams that the server allows at once, as it said first.
    let firstLimit: Int
    private let handler: HTTP2SessionHandler

    init(_ channel: any Channel, _ handler: HTTP2SessionHandler, _ endpoint: NIOTransport.Endpoint, limit: Int) {
        self.channel = channel
        self.handler = handler
        self.endpoint = endpoint
        firstLimit = limit
    }

    /// Begins to speak HTTP/2 on a channel whose server chose it.
    static func begin(
        on channel: any Channel, _ endpoint: NIOTransport.Endpoint, _ opening: ConnectionOpening, pool: ConnectionPool,
        headBytes: Int, idleTimeout: Duration
    ) throws {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .enablePush, value: 0),
            HTTP2Setting(parameter: .maxHeaderListSize, value: headBytes),
            HTTP2Setting(parameter: .initialWindowSize, value: windowBytes),
        ]
        connection.targetWindowSize = connectionWindowBytes
        // The streams' handlers do both: they tell what is wrong, and end one stream for it, not all.
        connection.contentLengthValidation = .disabled
        connection.headerBlockValidation = .disabled
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.targetWindowSize = windowBytes
        // Of a server that resets many of the streams of many clients, none of the others is at fault.
        stream.streamResetFrameRateLimit.maximumCount = 10_000
        let pipeline = channel.pipeline.syncOperations
        let multiplexer = try pipeline.configureHTTP2Pipeline(
            mode: .client, connectionConfiguration: connection, streamConfiguration: stream
        ) { pushed in
            // The settings ask for none.
            pushed.close()
        }
        try pipeline.addHandler(
            HTTP2SessionHandler(endpoint, opening, multiplexer, pool: pool, idleTimeout: idleTimeout))
        // What arrives is held back by the windows: a connection that is not read hears of no window either.
        try channel.syncOptions?.setOption(.autoRead, value: true)
        channel.read()
    }

    /// Opens a stream with the permission of the pool; nil if the session no longer accepts any.
    func open() async -> Connection? {
        await withCheckedContinuation { continuation in
            channel.eventLoop.execute { [handler] in
                handler.open(self) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Takes no more streams, and closes when those that are open have ended.
    func closeWhenUnused() { channel.eventLoop.execute { [handler] in handler.leave() } }
}
