import HTTPTypes
import HTTPWire
import NIOCore

/// A connection to the admin server: one request, one answer.
final class AdminHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let reader: MetricsReader
    private var input = ByteBuffer()
    private var scanner = HeadScanner(limits: HeadLimits(headBytes: 16 << 10), isRequest: true)
    private var isDone = false
    private var timeout: Scheduled<Void>?

    init(_ reader: MetricsReader) { self.reader = reader }

    func channelActive(context: ChannelHandlerContext) {
        // A client that connects and asks nothing, or does not read, must not hold the connection.
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(30)) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) { timeout?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        var bytes = unwrapInboundIn(data)
        input.writeBuffer(&bytes)
        let head: RequestHead?
        do throws(WireError) {
            head = try parse()
        } catch {
            isDone = true
            return answer(OwnAnswer(error.status, "The request is malformed: \(error)."), isHead: false, context)
        }
        guard let head else { return }
        isDone = true
        let isHead = head.request.method == .head
        guard head.request.method == .get || isHead else {
            var refusal = OwnAnswer(405, "The admin server knows GET and HEAD.")
            refusal.fields[.allow] = "GET, HEAD"
            return answer(refusal, isHead: false, context)
        }
        let path = String((head.request.path ?? "/").prefix { $0 != "?" })
        let reader = reader
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let promise = context.eventLoop.makePromise(of: OwnAnswer.self)
        promise.futureResult.whenComplete { page in
            let (handler, context) = bound.value
            switch page {
            case .success(let page): handler.answer(page, isHead: isHead, context)
            case .failure: context.close(promise: nil)
            }
        }
        let task = reader.core.tasks.start { promise.succeed(await Self.page(path, reader)) }
        if task == nil { promise.fail(CancellationError()) }
    }

    private func parse() throws(WireError) -> RequestHead? {
        let bytes = Array(input.readableBytesView)
        return try bytes.withBytes { (bytes) throws(WireError) in
            guard let range = try scanner.scan(bytes) else { return nil }
            return try RequestHead.parse(UnsafeRawBufferPointer(rebasing: bytes[range]))
        }
    }

    private static func page(_ path: String, _ reader: MetricsReader) async -> OwnAnswer {
        switch path {
        case "/metrics":
            let health = reader.core.service.health
            let text = PrometheusText(
                await reader.counters(), await reader.statistics(), reader.core,
                troubles: await health.troubles(), storeFailures: health.failures)
            return body(text.text, PrometheusText.contentType)
        case "/healthz":
            let troubles = await reader.core.service.health.troubles()
            if troubles.isEmpty { return OwnAnswer(200, "ok") }
            let causes = troubles.map { "\($0)" }.joined(separator: "\n")
            return OwnAnswer(503, "requests are served from the origin, the store is in trouble\n\(causes)")
        case "/livez":
            return OwnAnswer(200, "ok")
        case "/":
            let page = StatusPage.html(await reader.counters(), await reader.statistics(), reader.history.intervals)
            return body(page, "text/html; charset=utf-8")
        default:
            return OwnAnswer(404, "There are /, /metrics, /healthz and /livez.")
        }
    }

    private static func body(_ text: String, _ contentType: String) -> OwnAnswer {
        var answer = OwnAnswer(200, "", contentType: contentType)
        answer.body = Array(text.utf8)
        return answer
    }

    private func answer(_ answer: OwnAnswer, isHead: Bool, _ context: ChannelHandlerContext) {
        var head = answer.head(at: reader.core.time.wallSeconds())
        head.headerFields[.contentLength] = String(answer.body.count)
        head.headerFields[.connection] = "close"
        head.headerFields[.xContentTypeOptions] = "nosniff"
        var bytes: [UInt8] = []
        do throws(WireError) {
            try MessageWriter.append(head, to: &bytes)
        } catch {
            return context.close(promise: nil)
        }
        if !isHead { bytes += answer.body }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)))
            .assumeIsolated().whenComplete { _ in context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
