import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// Asks a proxy for a tunnel (RFC 9110 section 9.3.6), and makes room for what goes through it.
final class TunnelHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let endpoint: NIOTransport.Endpoint
    private let proxy: NIOTransport.Proxy
    private let limits: HeadLimits
    private let opening: ConnectionOpening
    private let next: (any Channel) throws -> Void
    private var scanner: HeadScanner
    private var input = ByteBuffer()
    private var isOver = false

    /// - Parameter next: adds the handlers for the other end of the tunnel.
    init(
        _ endpoint: NIOTransport.Endpoint, through proxy: NIOTransport.Proxy, limits: HeadLimits,
        _ opening: ConnectionOpening,
        next: @escaping (any Channel) throws -> Void
    ) {
        self.endpoint = endpoint
        self.proxy = proxy
        self.limits = limits
        self.opening = opening
        self.next = next
        scanner = HeadScanner(limits: limits, isRequest: false)
    }

    func channelActive(context: ChannelHandlerContext) {
        var request = HTTPRequest(method: .connect, scheme: nil, authority: "\(endpoint)", path: nil)
        if let credentials = proxy.credentials { request.headerFields[.proxyAuthorization] = credentials.field }
        var bytes: [UInt8] = []
        do throws(WireError) {
            try MessageWriter.append(request, to: &bytes)
        } catch {
            return fail(context, .invalidRequest("'\(endpoint)' cannot be asked of the proxy \(proxy)"))
        }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard !isOver else { return }
        input.writeBuffer(&buffer)
        do {
            while let status = try head() {
                // Interim responses say nothing about the tunnel.
                if (100..<200).contains(status.code), status.code != 101 { continue }
                guard (200..<300).contains(status.code) else {
                    return fail(
                        context,
                        TransportError(
                            .cannotConnect, mayHaveBeenSeen: false,
                            endpoint: "\(endpoint)", "the proxy \(proxy) refused a tunnel to \(endpoint): \(status)"))
                }
                return try open(context)
            }
        } catch {
            let why = "the proxy \(proxy) gave no valid answer: \(error)"
            fail(context, TransportError(.cannotConnect, mayHaveBeenSeen: false, endpoint: "\(endpoint)", why))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if isOver { context.fireChannelReadComplete() } else { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(context, .cannotConnect(proxy.endpoint, error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        let why = "the proxy \(proxy) closed the connection before there was a tunnel to \(endpoint)"
        opening.fail(TransportError(.cannotConnect, mayHaveBeenSeen: false, endpoint: "\(endpoint)", why))
        context.fireChannelInactive()
    }

    /// The status of the next head; nil where it has not arrived.
    private func head() throws -> HTTPResponse.Status? {
        let limits = limits
        let found = try input.withUnsafeReadableBytes { raw -> (HTTPResponse.Status, Int)? in
            guard let range = try scanner.scan(raw) else { return nil }
            let bytes = UnsafeRawBufferPointer(rebasing: raw[range])
            return (
                try ResponseHead.parse(bytes, answering: .connect, limits: limits).lines.status, range.upperBound
            )
        }
        guard let (status, count) = found else { return nil }
        input.moveReaderIndex(forwardBy: count)
        scanner.reset()
        return status
    }

    private func open(_ context: ChannelHandlerContext) throws {
        isOver = true
        try next(context.channel)
        if input.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(input)) }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private func fail(_ context: ChannelHandlerContext, _ error: TransportError) {
        isOver = true
        opening.fail(error)
        context.close(promise: nil)
    }
}
