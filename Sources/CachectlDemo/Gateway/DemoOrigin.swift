import CachectlCore
import HTTPCaching
import Larder
import NIOCore
import NIOHTTP1
import NIOPosix
import Locks
import SystemPackage

/// An origin server for the demo: the files of a directory, with the caching fields that web servers send.
///
/// Styles, scripts and images are fresh for an hour, documents for seconds, and some files must not be stored. Every
/// file has an entity tag; a request with that tag gets 304 (Not Modified).
final class DemoOrigin: Sendable {
    /// The number of requests.
    let requests = Atomic<Int>(0)
    /// The number of responses with 304.
    let notModified = Atomic<Int>(0)

    private let corpus: Corpus
    private let indices: [String: Int]
    private let listener = Mutex<(any Channel)?>(nil)

    init(_ corpus: Corpus) {
        self.corpus = corpus
        var indices: [String: Int] = [:]
        for index in corpus.files.indices { indices[corpus.path(index)] = index }
        self.indices = indices
    }

    /// Starts on a free port of 127.0.0.1.
    /// - Returns: the port.
    func start() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
                    try channel.pipeline.syncOperations.addHandler(Responder(self))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        listener.withLock { $0 = channel }
        return channel.localAddress?.port ?? 0
    }

    func stop() async { try? await listener.withLock { $0 }?.close().get() }

    /// The response to a request.
    fileprivate func answer(_ head: HTTPRequestHead) -> (HTTPResponseHead, [UInt8]) {
        requests.add(1, ordering: .relaxed)
        guard let index = indices[head.uri], let bytes = corpus.contents(index) else {
            return (response(.notFound, ["cache-control": "max-age=5", "content-length": "0"]), [])
        }
        let tag = "\"" + Digest.of(bytes).hexadecimal.prefix(16) + "\""
        var fields: HTTPHeaders = ["etag": tag, "cache-control": Self.cacheControl(head.uri)]
        if head.headers["if-none-match"].contains(tag) {
            notModified.add(1, ordering: .relaxed)
            return (response(.notModified, fields), [])
        }
        fields.add(name: "content-type", value: Self.contentType(head.uri))
        fields.add(name: "content-length", value: "\(bytes.count)")
        return (response(.ok, fields), head.method == .HEAD ? [] : bytes)
    }

    private func response(_ status: HTTPResponseStatus, _ fields: HTTPHeaders) -> HTTPResponseHead {
        var fields = fields
        fields.add(name: "date", value: HTTPDate.format(Instant(milliseconds: Timestamp.now.microseconds / 1_000)))
        return HTTPResponseHead(version: .http1_1, status: status, headers: fields)
    }

    private static func cacheControl(_ path: String) -> String {
        switch path.split(separator: ".").last.map({ $0.lowercased() }) ?? "" {
        case "css", "js", "png", "jpg", "svg", "gif", "ico", "woff", "ttf": "public, max-age=3600, immutable"
        case "html", "htm", "xml", "json": "max-age=5, stale-while-revalidate=10"
        case "log", "pid", "lock": "no-store"
        default: "max-age=20"
        }
    }

    private static func contentType(_ path: String) -> String {
        switch path.split(separator: ".").last.map({ $0.lowercased() }) ?? "" {
        case "css": "text/css"
        case "js": "text/javascript"
        case "png": "image/png"
        case "svg": "image/svg+xml"
        case "html", "htm": "text/html"
        case "json": "application/json"
        case "txt", "md", "copyright": "text/plain; charset=utf-8"
        default: "application/octet-stream"
        }
    }

    private final class Responder: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let origin: DemoOrigin
        private var head: HTTPRequestHead?

        init(_ origin: DemoOrigin) { self.origin = origin }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): self.head = head
            case .body: break
            case .end:
                guard let head else { return }
                let (response, bytes) = origin.answer(head)
                context.write(wrapOutboundOut(.head(response)), promise: nil)
                if !bytes.isEmpty {
                    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
                }
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
