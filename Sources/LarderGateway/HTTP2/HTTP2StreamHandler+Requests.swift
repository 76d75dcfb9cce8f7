import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTPTypes

/// Reading the request.
///
/// A request has content unless its head ends the stream (RFC 9113 section 8.1), whatever its method.
extension HTTP2StreamHandler {
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): open(request)
        case .body(let bytes): take(bytes)
        case .end:
            isRequestComplete = true
            decideOpenHead(hasContent: false)
            inlet?.finish()
        }
    }

    private func open(_ received: HTTPRequest) {
        guard record == nil else { return }
        var request = received
        method = request.method
        var record = RequestRecord(
            start: worker.core.time.now(), client: connection.client, method: "",
            methodIndex: Counters.methodIndex(request.method.rawValue), target: "", version: "HTTP/2.0")
        let refusal = HTTP2RequestCheck(limits: worker.core.configuration.limits).normalise(&request)
        if worker.log != nil {
            record.method = request.method.rawValue
            record.host = request.authority ?? ""
            record.target = request.path ?? request.authority ?? ""
            record.referer = request.headerFields[.referer] ?? ""
            record.userAgent = request.headerFields[.userAgent] ?? ""
        }
        self.record = record
        if let refusal {
            worker.counters.malformedRequests += 1
            return write(refusal)
        }
        openHead = request
    }

    /// What came with the head has been read.
    func channelReadComplete(context: ChannelHandlerContext) {
        if let openHead, let hasContent = announcesContent(openHead) { decideOpenHead(hasContent: hasContent) }
        context.fireChannelReadComplete()
    }

    /// Whether content follows a head that did not end the stream; nil where the next frame has to tell.
    ///
    /// Many clients end a GET with an empty frame of its own, which may come later. It must not keep the GET from the
    /// cache, and content that comes later must not be lost: so a request whose method seldom has content, and that
    /// does not say that it has, waits for the frame. RFC 9110 section 9.3.1 says of content in a GET that it has no
    /// generally defined semantics, not that there is none.
    private func announcesContent(_ head: HTTPRequest) -> Bool? {
        if let length = head.headerFields[.contentLength] { return HTTP2RequestCheck.length(length) != 0 }
        if head.headerFields[.expect] != nil { return true }
        let methods: [HTTPRequest.Method] = [.get, .head, .delete, .options, .trace]
        return methods.contains(head.method) ? nil : true
    }

    private func decideOpenHead(hasContent: Bool) {
        guard let request = openHead else { return }
        openHead = nil
        self.hasContent = hasContent
        guard connection.hasMemoryForRequests else {
            waitingRequest = request
            connection.waiting.append(self)
            return
        }
        answer(request)
    }

    /// There is memory for a request that waited.
    func admit() {
        guard let request = waitingRequest, !isOver else { return }
        waitingRequest = nil
        answer(request)
        for piece in early { offer(piece) }
        early = []
        if isRequestComplete { inlet?.finish() }
        if let context { resumeReading(context) }
    }

    private func answer(_ received: HTTPRequest) {
        let core = worker.core
        var request = received
        let length = request.headerFields[.contentLength].flatMap { HTTP2RequestCheck.length($0) }
        if let length, length > core.configuration.limits.bodyBytes {
            return refuse(413, "The content of the request is over the limit.")
        }
        owesContinue = request.headerFields[.expect]?.lowercased() == "100-continue"
        let forwards = mayForward(request)
        // What the client sees of a host that is served here is this scheme.
        if !forwards { request.scheme = "https" }
        guard forwards || isServed(request) else {
            return refuse(421, "This gateway has no origin for the host of the request.")
        }
        switch core.decide(&request, hasContent: hasContent, isAbsolute: forwards, isLoopback: connection.isLoopback) {
        case .own(let answer): write(answer)
        case .stored(let response): write(response)
        case .load(let pending): load(pending, length: length)
        case .purge(let order): purge(order)
        case .tunnel: refuse(501, "This gateway does not open tunnels over HTTP/2.")
        }
    }

    /// Whether the host has an origin here. A PURGE has none to go to.
    private func isServed(_ request: HTTPRequest) -> Bool {
        let configuration = worker.core.configuration
        return configuration.routes.origin(for: request.authority ?? "") != nil
            || (request.method.rawValue == "PURGE" && configuration.purging.isEnabled)
    }

    /// Whether the request is one for a forward proxy. HTTP/2 has the same form for those and for requests to a server,
    /// so that a host without an origin here would be all it takes to reach any server: the operator has to want that.
    private func mayForward(_ request: HTTPRequest) -> Bool {
        let configuration = worker.core.configuration
        return configuration.routes.allowsForwarding && configuration.tls?.allowsForwarding == true
            && (request.scheme == "http" || request.scheme == "https")
            && configuration.routes.origin(for: request.authority ?? "") == nil
    }

    private func load(_ pending: LoadRequest, length: Int64?) {
        let address = connection.remoteAddress
        guard let place = worker.core.place(for: address, isLoopback: connection.isLoopback) else {
            return write(.tooManyRequests)
        }
        var body: RequestBody?
        if hasContent {
            let loop = worker.eventLoop
            let handler = NIOLoopBound(self, eventLoop: loop)
            let inlet = BodyInlet(memory: worker.core.memory) {
                loop.execute { handler.value.contentWanted() }
            }
            body = inlet.body(length: length)
            self.inlet = inlet
        }
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.place = place
        delivery.load(pending, from: worker.core.cache, body: body, relaysInformational: true)
    }

    private func purge(_ order: PurgeOrder) {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.purge(order)
    }

    // MARK: Content

    private func take(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0 else { return }
        decideOpenHead(hasContent: true)
        worker.counters.bytesIn += UInt64(bytes.readableBytes)
        received += Int64(bytes.readableBytes)
        guard received <= worker.core.configuration.limits.bodyBytes else {
            return refuse(413, "The content of the request is over the limit.")
        }
        if waitingRequest != nil {
            early.append(Array(bytes.readableBytesView))
        } else if hasContent || hasBegun {
            // What comes behind an answer is dropped.
            offer(Array(bytes.readableBytesView))
        } else {
            refuse(400, "The request has more content than it announced.")
        }
    }

    private func offer(_ bytes: [UInt8]) {
        ahead += Int64(bytes.count)
        inlet?.offer(bytes)
    }

    /// The load asks for content: the client that waits for 100 gets it now, and not where the origin refuses the
    /// request before.
    private func contentWanted() {
        guard let context, !isOver else { return }
        ahead = 0
        if owesContinue, !hasBegun, received == 0, !isRequestComplete {
            context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
        }
        owesContinue = false
        resumeReading(context)
    }

    // MARK: Reading no faster than needed

    /// A connection may have many streams: each brings less content here than one of HTTP/1.1.
    private static let aheadLimit: Int64 = 64 << 10

    var wantsToRead: Bool {
        guard let inlet else { return waitingRequest == nil }
        return inlet.takesMore && ahead < Self.aheadLimit
    }

    func read(context: ChannelHandlerContext) {
        if wantsToRead { context.read() } else { hasPendingRead = true }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        guard hasPendingRead, wantsToRead else { return }
        hasPendingRead = false
        context.read()
    }
}
