import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

/// One request on an HTTP/2 connection. What is decided is the same as for HTTP/1.1.
final class HTTP2StreamHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    let worker: Worker
    private let connection: HTTP2Connection
    private var context: ChannelHandlerContext?
    private var record: RequestRecord?
    private var waitingHead: HTTPRequest?
    private var method = HTTPRequest.Method.get
    private var inlet: BodyInlet?
    private var delivery: Delivery?
    private var hasPendingRead = false
    private var hasContent = false
    private var isRequestComplete = false
    private var owesContinue = false
    private var hasBegun = false
    private var isOver = false
    private var received: Int64 = 0
    private var sent: Int64 = 0
    private var outboundMark: RateMark?
    private var inboundMark: RateMark?

    init(_ worker: Worker, _ connection: HTTP2Connection) {
        self.worker = worker
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        connection.began(self, id: try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID))
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: The request

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request):
            waitingHead = request
        case .body(let bytes):
            guard bytes.readableBytes > 0 else { return }
            handleHead(hasContent: true, context)
            worker.counters.bytesIn += UInt64(bytes.readableBytes)
            received += Int64(bytes.readableBytes)
            guard received <= worker.core.configuration.limits.bodyBytes else {
                return refuse(413, "The content of the request is over the limit.", context)
            }
            guard hasContent else {
                return refuse(400, "The content of the request came late and without its length.", context)
            }
            inlet?.offer(Array(bytes.readableBytesView))
        case .end:
            isRequestComplete = true
            handleHead(hasContent: false, context)
            inlet?.finish()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let waitingHead {
            // What did not come with the head is not waited for: many clients end even a GET with a frame of its own.
            let methods: [HTTPRequest.Method] = [.get, .head, .delete, .options, .trace]
            let length = waitingHead.headerFields[.contentLength]
            handleHead(hasContent: length.map { $0 != "0" } ?? !methods.contains(waitingHead.method), context)
        }
        context.fireChannelReadComplete()
    }

    private func handleHead(hasContent: Bool, _ context: ChannelHandlerContext) {
        guard let request = waitingHead else { return }
        waitingHead = nil
        self.hasContent = hasContent
        handle(request, context)
    }

    private func handle(_ received: HTTPRequest, _ context: ChannelHandlerContext) {
        guard record == nil else { return }
        var request = received
        method = request.method
        var record = RequestRecord(
            start: worker.core.time.now(), client: connection.client, method: "",
            methodIndex: Counters.methodIndex(request.method.rawValue), target: "", version: "HTTP/2.0")
        // RFC 9113 section 8.3.1: the field counts where there is no pseudo-header field, and has to agree with it.
        if let host = request.headerFields[.host] {
            guard request.authority == nil || request.authority?.lowercased() == host.lowercased() else {
                self.record = record
                return refuse(400, "The request names two hosts.", context)
            }
            request.authority = host
            request.headerFields[.host] = nil
        }
        if worker.log != nil {
            record.method = request.method.rawValue
            record.host = request.authority ?? ""
            record.target = request.path ?? request.authority ?? ""
            record.referer = request.headerFields[.referer] ?? ""
            record.userAgent = request.headerFields[.userAgent] ?? ""
        }
        self.record = record
        // What the client sees is this scheme; another one in the request is for a proxy to translate, which this is not.
        request.scheme = "https"
        guard request.headerFields.count <= worker.core.configuration.limits.fieldCount else {
            return refuse(431, "The request has too many fields.", context)
        }
        guard request.method != .connect else {
            return refuse(501, "This gateway makes no tunnels over HTTP/2.", context)
        }
        guard let path = request.path, path.hasPrefix("/") || path == "*",
            Authority.split(request.authority ?? "") != nil
        else { return refuse(400, "The request has no proper target.", context) }
        answer(request, context)
    }

    private func answer(_ received: HTTPRequest, _ context: ChannelHandlerContext) {
        var request = received
        let length = request.headerFields[.contentLength].flatMap { Int64($0) }
        if let length, length > worker.core.configuration.limits.bodyBytes {
            return refuse(413, "The content of the request is over the limit.", context)
        }
        owesContinue = request.headerFields[.expect]?.lowercased() == "100-continue"
        switch worker.core.decide(
            &request, hasContent: hasContent, isAbsolute: true, isLoopback: connection.isLoopback)
        {
        case .own(let answer): write(answer, context)
        case .stored(let response): write(response, context)
        case .load(let pending): load(pending, length: length)
        case .purge(let order): purge(order)
        case .tunnel: refuse(501, "This gateway makes no tunnels over HTTP/2.", context)
        }
    }

    private func load(_ pending: PendingLoad, length: Int64?) {
        var body: RequestBody?
        if hasContent {
            let loop = worker.eventLoop
            let handler = NIOLoopBound(self, eventLoop: loop)
            let inlet = BodyInlet { loop.execute { handler.value.contentWanted() } }
            body = inlet.body(length: length)
            self.inlet = inlet
        }
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.load(pending, from: worker.core.cache, body: body, relaysInformational: true)
    }

    private func purge(_ order: PurgeOrder) {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        let core = worker.core
        let handler = NIOLoopBound(self, eventLoop: worker.eventLoop)
        delivery.perform({ await core.perform(order) }) { answer in
            guard let context = handler.value.context else { return }
            handler.value.write(answer, context)
        }
    }

    private func contentWanted() {
        guard let context, !isOver else { return }
        if owesContinue, !hasBegun, received == 0, !isRequestComplete {
            owesContinue = false
            context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
        }
        resumeReading(context)
    }

    // MARK: Reading no faster than needed

    func read(context: ChannelHandlerContext) {
        if inlet?.takesMore ?? true { context.read() } else { hasPendingRead = true }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        guard hasPendingRead, inlet?.takesMore ?? true else { return }
        hasPendingRead = false
        context.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { delivery?.resume() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: The answer

    private func write(_ answer: OwnAnswer, _ context: ChannelHandlerContext) {
        begin(answer.head(at: worker.core.time.wallSeconds()), length: Int64(answer.body.count), context)
        if method != .head { content(answer.body, context) }
        finish(context)
    }

    private func write(_ response: FetchResponse, _ context: ChannelHandlerContext) {
        record?.source = response.source
        begin(response.head, length: response.body.length, context)
        guard answerHasContent(response.head.status.code) else { return finish(context) }
        guard case .segments(let segments) = response.body.source,
            segments.reduce(0, { $0 + $1.count }) <= Self.immediateBytes
        else {
            let delivery = self.delivery ?? Delivery(worker.eventLoop, to: self)
            self.delivery = delivery
            return delivery.send(response.body)
        }
        do {
            for segment in segments {
                switch segment {
                case .bytes(let bytes): content(bytes, context)
                case .stored(let body, let range): content(try body.bytes(in: range), context)
                }
            }
            finish(context)
        } catch {
            worker.core.logger.error("cannot read a stored body", metadata: ["error": "\(error)"])
            fail(context)
        }
    }

    private static let immediateBytes: Int64 = 64 << 10

    private func answerHasContent(_ status: Int) -> Bool {
        method != .head && status >= 200 && status != 204 && status != 304
    }

    private func begin(_ head: HTTPResponse, length: Int64?, _ context: ChannelHandlerContext) {
        var head = head
        // RFC 9113 section 8.2.2: fields of a connection make a message malformed.
        head.headerFields[.connection] = nil
        head.headerFields[.transferEncoding] = nil
        head.headerFields[.keepAlive] = nil
        if answerHasContent(head.status.code) { head.headerFields[.contentLength] = length.map { String($0) } }
        hasBegun = true
        record?.status = head.status.code
        context.write(wrapOutboundOut(.head(head)), promise: nil)
    }

    private func content(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        guard !bytes.isEmpty else { return }
        record?.bytesSent += Int64(bytes.count)
        worker.counters.bytesOut += UInt64(bytes.count)
        sent += Int64(bytes.count)
        context.write(wrapOutboundOut(.body(context.channel.allocator.buffer(bytes: bytes))), promise: nil)
    }

    private func finish(_ context: ChannelHandlerContext) {
        guard let record else { return }
        worker.finished(record)
        self.record = nil
        inlet?.fail()
        inlet = nil
        context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in
            // "A server MAY request that the client abort transmission of a request without error by sending a RST_STREAM
            // with an error code of NO_ERROR after sending a complete response" (RFC 9113 section 8.1).
            if !self.isRequestComplete, !self.isOver {
                context.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: .noError), promise: nil)
            }
        }
    }

    private func fail(_ context: ChannelHandlerContext) {
        if var record {
            record.isIncomplete = true
            worker.finished(record)
            self.record = nil
        }
        // Closing a stream that has not ended resets it.
        context.close(promise: nil)
    }

    private func refuse(_ status: Int, _ text: String, _ context: ChannelHandlerContext) {
        inlet?.fail()
        delivery?.cancel()
        delivery = nil
        if hasBegun { fail(context) } else { write(OwnAnswer(status, text), context) }
    }

    private func leave() {
        guard !isOver else { return }
        isOver = true
        delivery?.cancel()
        delivery = nil
        inlet?.fail()
        // It asks this handler for more.
        inlet = nil
        if var record {
            worker.counters.clientAborts += 1
            record.isIncomplete = true
            worker.finished(record)
        }
        record = nil
        connection.ended(self)
    }

    // MARK: Limits in time

    func tick(_ now: NIODeadline) {
        guard let context, !isOver else { return }
        let limits = worker.core.configuration.limits
        let isBlocked = hasBegun && record != nil && !context.channel.isWritable
        let awaits = !isRequestComplete && inlet != nil && (inlet?.takesMore ?? false) && !owesContinue
        let isSlow =
            Self.isSlow(isBlocked, sent, &outboundMark, now, limits)
            || Self.isSlow(awaits, received, &inboundMark, now, limits)
        if isSlow {
            worker.counters.timeouts += 1
            refuse(408, "The content of the request did not arrive in time.", context)
        }
    }

    private static func isSlow(
        _ isWaiting: Bool, _ bytes: Int64, _ mark: inout RateMark?, _ now: NIODeadline, _ limits: GatewayLimits
    ) -> Bool {
        guard isWaiting else {
            mark = nil
            return false
        }
        guard let last = mark else {
            mark = RateMark(time: now, bytes: bytes)
            return false
        }
        let elapsed = now - last.time
        guard elapsed >= TimeAmount(limits.stallTimeout) else { return false }
        let least = Double(limits.minimumRate) * Double(elapsed.nanoseconds) / 1e9
        if Double(bytes - last.bytes) < max(1, least) { return true }
        mark = RateMark(time: now, bytes: bytes)
        return false
    }
}

extension HTTP2StreamHandler: DeliverySink {
    var takesMore: Bool { context?.channel.isWritable ?? false }

    func deliver(informational head: HTTPResponse) {
        guard let context, !hasBegun, head.status.code != 100, head.status.code != 101 else { return }
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    func deliver(_ result: Result<FetchResponse, FetchError>) -> Bool {
        guard let context, record != nil else { return false }
        switch result {
        case .failure(let error):
            if error.transport != nil { worker.counters.upstreamErrors += 1 }
            write(GatewayCore.answer(to: error), context)
            return false
        case .success(let response):
            if response.originError != nil { worker.counters.upstreamErrors += 1 }
            guard case .live = response.body.source else {
                write(response, context)
                return false
            }
            record?.source = response.source
            begin(response.head, length: response.body.length, context)
            guard answerHasContent(response.head.status.code) else {
                finish(context)
                return false
            }
            context.flush()
            return true
        }
    }

    func deliver(piece: [UInt8]) {
        guard let context, record != nil else { return }
        content(piece, context)
        context.flush()
    }

    func deliverEnd() {
        guard let context else { return }
        finish(context)
    }

    func deliverFailure(_ error: any Error) {
        guard let context else { return }
        if error is FetchError { worker.counters.upstreamErrors += 1 }
        fail(context)
    }
}

extension HTTPField.Name {
    static let host = HTTPField.Name("Host")!
}
