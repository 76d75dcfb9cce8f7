import HTTPTypes
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2
import NIOPosix
import NIOSSL

/// A client connection that speaks HTTP/2 over TLS.
struct HTTP2Client: Sendable {
    /// All of an answer.
    struct Response: Sendable {
        var informational: [HTTPResponse] = []
        var head = HTTPResponse(status: .init(code: 999))
        var body: [UInt8] = []
    }

    /// The stream was reset, or ended without an answer.
    struct Reset: Error {}

    private let channel: any Channel
    private let multiplexer: NIOHTTP2Handler.StreamMultiplexer

    static func connect(to port: Int) async throws -> HTTP2Client {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: tls)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let multiplexer = loop.makePromise(of: NIOHTTP2Handler.StreamMultiplexer.self)
        do {
            let channel = try await ClientBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                        // Before the server's first frame can come.
                        multiplexer.succeed(
                            try pipeline.configureHTTP2Pipeline(
                                mode: .client, connectionConfiguration: .init(), streamConfiguration: .init()
                            ) { $0.eventLoop.makeSucceededVoidFuture() })
                    }
                }
                .connect(host: "127.0.0.1", port: port).get()
            return HTTP2Client(channel: channel, multiplexer: try await multiplexer.futureResult.get())
        } catch {
            multiplexer.fail(error)
            throw error
        }
    }

    func get(_ path: String, _ fields: HTTPFields = [:]) async throws -> Response {
        try await send(
            HTTPRequest(method: .get, scheme: "https", authority: "example.org", path: path, headerFields: fields))
    }

    /// - Parameter body: nil ends the request with its head.
    func send(_ request: HTTPRequest, body: [UInt8]? = nil) async throws -> Response {
        let promise = channel.eventLoop.makePromise(of: Response.self)
        let stream = try await multiplexer.createStreamChannel { stream in
            stream.eventLoop.makeCompletedFuture {
                if body == nil { try stream.pipeline.syncOperations.addHandler(EndWithHead()) }
                try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTPClientCodec())
                try stream.pipeline.syncOperations.addHandler(Collector(promise))
            }
        }.get()
        stream.writeAndFlush(HTTPRequestPart.head(request), promise: nil)
        if let body { stream.writeAndFlush(HTTPRequestPart.body(ByteBuffer(bytes: body)), promise: nil) }
        stream.writeAndFlush(HTTPRequestPart.end(nil), promise: nil)
        return try await promise.futureResult.get()
    }

    /// Returns when the server has closed.
    func closed() async throws { try await channel.closeFuture.get() }

    func close() async { try? await channel.close().get() }
}

/// Puts the parts of an answer together.
private final class Collector: ChannelInboundHandler {
    typealias InboundIn = HTTPResponsePart

    private let promise: EventLoopPromise<HTTP2Client.Response>
    private var response = HTTP2Client.Response()
    private var isComplete = false

    init(_ promise: EventLoopPromise<HTTP2Client.Response>) { self.promise = promise }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head) where head.status.kind == .informational: response.informational.append(head)
        case .head(let head): response.head = head
        case .body(let bytes): response.body += Array(bytes.readableBytesView)
        case .end:
            isComplete = true
            promise.succeed(response)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isComplete { promise.fail(HTTP2Client.Reset()) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isComplete = true
        promise.fail(error)
    }
}

/// Ends a request without content with its head, as most clients do: the codec sends an empty frame behind it.
private final class EndWithHead: ChannelOutboundHandler {
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .headers(var head):
            head.endStream = true
            context.write(wrapOutboundOut(.headers(head)), promise: promise)
        default:
            promise?.succeed()
        }
    }
}
