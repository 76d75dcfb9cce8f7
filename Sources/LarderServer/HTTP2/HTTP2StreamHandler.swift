import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTPTypes

/// One request on an HTTP/2 connection: takes the events of the stream's channel, and decides what is done about the
/// request. What is decided is the same as for HTTP/1.1.
///
/// Each owner below keeps its own state: ``HTTP2RequestContent`` the content that comes, ``HTTP2Responder`` the answer,
/// ``HTTP2StreamOutput`` what goes out. ``HTTP2Connection`` makes them.
///
/// A request has content unless its head ends the stream (RFC 9113 section 8.1), whatever its method.
final class HTTP2StreamHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// How far the request has come.
    private enum Phase {
        /// Its head has not come.
        case idle
        /// It is not known yet whether content follows the head.
        case open(HTTPRequest, since: NIODeadline)
        /// It is answered when the connection has memory.
        case waiting(HTTPRequest)
        /// It is answered, or is being answered.
        case decided
    }

    /// The stream's number.
    let id: Int
    private let worker: Worker
    private let connection: HTTP2Connection
    private let scheduler: HTTP2Scheduler
    private let output: HTTP2StreamOutput
    private let content: HTTP2RequestContent
    private let responder: HTTP2Responder
    private var phase = Phase.idle
    /// Whether content belongs to the request.
    private var hasContent = false
    private var context: ChannelHandlerContext?
    private var hasPendingRead = false
    /// How fast the client takes what is sent, as far as its window for this stream tells.
    private var outboundWatch = RateWatch()

    init(
        _ worker: Worker, _ connection: HTTP2Connection, _ scheduler: HTTP2Scheduler, _ output: HTTP2StreamOutput,
        _ content: HTTP2RequestContent, _ responder: HTTP2Responder
    ) {
        id = output.id
        self.worker = worker
        self.connection = connection
        self.scheduler = scheduler
        self.output = output
        self.content = content
        self.responder = responder
    }

    /// About as much memory as the request and the load behind its answer take up, in bytes.
    /// - Parameter isMoving: whether the client took something lately.
    func footprint(isMoving: Bool) -> Int { content.heldBytes + responder.loadBytes(isMoving: isMoving) }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        output.attach(context)
        connection.began(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        output.detach()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): open(request)
        case .body(let bytes): take(bytes)
        case .end:
            content.finish()
            decide(hasContent: false)
        }
    }

    /// What came with the head has been read.
    func channelReadComplete(context: ChannelHandlerContext) {
        if case .open(let request, _) = phase, let hasContent = HTTP2RequestCheck.announcesContent(request) {
            decide(hasContent: hasContent)
        }
        context.fireChannelReadComplete()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// swift-nio-http2 has put a head into a frame.
    func wroteHead() { output.wroteHead() }

    /// swift-nio-http2 has put content into a frame.
    func wroteFrame(_ count: Int64, isLast: Bool) { responder.wroteFrame(count, isLast: isLast) }

    /// The stream is closed.
    private func leave() {
        guard !responder.isOver else { return }
        responder.leave()
        scheduler.end(responder)
        scheduler.withdraw(self)
        connection.ended(self)
        scheduler.send()
    }

    // MARK: Reading no faster than needed

    func read(context: ChannelHandlerContext) {
        if wantsToRead { context.read() } else { hasPendingRead = true }
    }

    private func resumeReading() {
        guard hasPendingRead, wantsToRead, let context else { return }
        hasPendingRead = false
        context.read()
    }

    private var isWaiting: Bool { if case .waiting = phase { true } else { false } }

    private var wantsToRead: Bool { !isWaiting && content.takesMore }

    // MARK: What is done about the request

    private func open(_ received: HTTPRequest) {
        guard case .idle = phase else { return }
        var request = received
        let start = worker.core.time.now()
        var record = RequestRecord(
            start: start, client: connection.client, method: "",
            methodIndex: ServerCounters.methodIndex(request.method.rawValue), target: "", version: "HTTP/2.0")
        let method = request.method
        let refusal = HTTP2RequestCheck(limits: worker.core.configuration.limits).normalise(&request)
        if worker.log != nil {
            record.method = request.method.rawValue
            record.host = request.authority ?? ""
            record.target = request.path ?? request.authority ?? ""
            record.referer = request.headerFields[.referer] ?? ""
            record.userAgent = request.headerFields[.userAgent] ?? ""
        }
        responder.begin(record, method: method)
        if let refusal {
            phase = .decided
            worker.counters.malformedRequests += 1
            return responder.write(refusal)
        }
        phase = .open(request, since: start)
    }

    private func decide(hasContent: Bool) {
        guard case .open(let request, _) = phase else { return }
        self.hasContent = hasContent
        guard scheduler.hasMemoryForRequests() else {
            phase = .waiting(request)
            return scheduler.wait(self)
        }
        phase = .decided
        answer(request)
    }

    private func answer(_ request: HTTPRequest) {
        let core = worker.core
        let length = request.headerFields[.contentLength].flatMap { HTTP2RequestCheck.length($0) }
        if let length, length > core.configuration.limits.bodyBytes {
            return refuse(413, "The content of the request is over the limit.")
        }
        if request.headerFields[.expect]?.lowercased() == "100-continue" { content.expectContinue() }
        let asked = ServiceRequest(
            head: request, hasContent: hasContent, contentLength: length, isLoopback: connection.isLoopback,
            isAbsolute: true, isHTTP2: true)
        switch core.decide(asked, by: worker.service) {
        case .answer(let answer): responder.write(answer)
        case .later(let work) where work.isLimited:
            forward(length: length) { responder.work(work, body: $0, place: $1) }
        case .later(let work): responder.work(work, body: nil, place: nil)
        case .tunnel: refuse(501, "This gateway does not open tunnels over HTTP/2.")
        }
    }

    /// Begins what needs the content of a request, where its client may have one more such request.
    private func forward(length: Int64?, _ begin: (RequestBody?, ClientTable.Place) -> Void) {
        let address = connection.remoteAddress
        guard let place = worker.core.place(for: address, isLoopback: connection.isLoopback) else {
            return responder.write(OwnAnswer.tooManyRequests)
        }
        var body: RequestBody?
        if hasContent {
            let loop = worker.eventLoop
            let handler = NIOLoopBound(self, eventLoop: loop)
            let inlet = BodyInlet(memory: worker.core.memory) {
                loop.execute { handler.value.contentWanted() }
            }
            body = inlet.body(length: length)
            content.connect(inlet)
        }
        begin(body, place)
    }

    /// Answers a request that cannot be answered as asked, or breaks off the answer that has begun.
    private func refuse(_ status: Int, _ text: String) {
        phase = .decided
        responder.refuse(status, text)
    }

    // MARK: Content

    private func take(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0 else { return }
        decide(hasContent: true)
        worker.counters.bytesIn += UInt64(bytes.readableBytes)
        content.count(bytes.readableBytes)
        guard content.received <= worker.core.configuration.limits.bodyBytes else {
            return refuse(413, "The content of the request is over the limit.")
        }
        if isWaiting {
            content.keep(Array(bytes.readableBytesView))
        } else if hasContent || responder.hasBegun {
            // What comes behind an answer is dropped.
            content.offer(Array(bytes.readableBytesView))
        } else {
            refuse(400, "The request has more content than it announced.")
        }
    }

    /// The load asks for content: the client that waits for 100 gets it now, and not where the origin refuses the
    /// request before.
    private func contentWanted() {
        guard context != nil, !responder.isOver else { return }
        if content.isWanted() { responder.askForContent() }
        resumeReading()
    }

    // MARK: Limits in time

    /// Whether the answer waits for the stream's own window, or the request for memory that the client's other streams
    /// take. A slow connection is not the stream's fault: see ``HTTP2Deadlines``.
    private var waitsForWindow: Bool { isWaiting || responder.waitsForWindow }

    /// Whether the stream is not held up by its client.
    var isProgressing: Bool { !waitsForWindow || outboundWatch.hasGained(output.taken) }

    /// Ends what its client holds up for too long. The watch over an answer ends when the kernel has its last byte.
    /// - Returns: whether the client does not take the answer.
    func tick(_ now: NIODeadline) -> Bool {
        guard !responder.isOver else { return false }
        let limits = worker.core.configuration.limits
        if case .open(_, let since) = phase, now - since > TimeAmount(limits.headTimeout) {
            contentIsLate()
            return false
        }
        if outboundWatch.isTooSlow(waitsForWindow, output.taken, now, limits) {
            worker.counters.timeouts += 1
            // RFC 9113 section 8.7: a request that was refused so may be sent again, whatever its method.
            responder.fail(isWaiting ? .refusedStream : .cancel)
            return true
        }
        if content.isTooSlow(now, limits) { contentIsLate() }
        return false
    }

    private func contentIsLate() {
        worker.counters.timeouts += 1
        refuse(408, "The content of the request did not arrive in time.")
    }
}

extension HTTP2StreamHandler: HTTP2Applicant {
    func admit() {
        guard case .waiting(let request) = phase, !responder.isOver else { return }
        phase = .decided
        answer(request)
        content.release()
        resumeReading()
    }
}
