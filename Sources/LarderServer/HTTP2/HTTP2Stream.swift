import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHPACK

/// One request on an HTTP/2 connection: takes what comes on its stream, and decides what is done about it. What is
/// decided is the same as for HTTP/1.1.
///
/// Each owner below keeps its own state: ``HTTP2RequestContent`` the content that comes, ``HTTP2Responder`` the answer,
/// ``HTTP2StreamOutput`` what goes out.
///
/// A request has content unless its head ends the stream (RFC 9113 section 8.1), whatever its method.
final class HTTP2Stream {
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
    let output: HTTP2StreamOutput
    private let content = HTTP2RequestContent()
    private let responder: HTTP2Responder
    private var phase = Phase.idle
    /// Whether content belongs to the request.
    private var hasContent = false
    private var intake = HTTP2Intake()
    /// What was begun without a task.
    private var begun: BegunRequest?
    /// What the head says of the length of the content, in bytes.
    private var announced: Int64?
    /// How fast the client takes what is sent, as far as its window for this stream tells.
    private var outboundWatch = RateWatch()

    init(_ id: Int, _ worker: Worker, _ connection: HTTP2Connection) {
        self.id = id
        self.worker = worker
        self.connection = connection
        scheduler = connection.scheduler
        output = HTTP2StreamOutput(id, connection.output, scheduler)
        responder = HTTP2Responder(worker, output, scheduler, content)
        responder.delegate = self
    }

    /// What brings the content of the answer from an origin.
    var source: ClosedConnections.Source? { responder.source }

    /// About as much memory as the request and the load behind its answer take up, in bytes.
    /// - Parameter isMoving: whether the client took something lately.
    func footprint(isMoving: Bool) -> Int { content.heldBytes + responder.loadBytes(isMoving: isMoving) }

    // MARK: What comes

    /// The client has sent all of its request.
    var isComplete: Bool { content.isComplete }

    /// A request without content, whose answer has begun.
    func resume(_ answer: HTTP2PlainHits.Answer) {
        phase = .decided
        content.finish()
        responder.resume(answer.record, answer.content, length: Int64(answer.length))
    }

    /// A request without content, which an origin answers, or the service, if that does not work.
    /// - Parameter fields: those of the head.
    func relay(_ relay: ServiceRelay, _ record: RequestRecord, otherwise fields: HPACKHeaders) {
        phase = .decided
        content.finish()
        // The service refuses it where there is no room, and counts it.
        guard worker.core.memory.hasRoom,
            let place = worker.core.place(
                for: connection.remoteAddress, isLoopback: connection.isLoopback, isRefused: false)
        else { return decideAgain(fields, BegunRequest(load: relay.work.unstarted(), place: nil), since: record.start) }
        responder.begin(record, method: .get)
        responder.relay(relay, place: place) { [weak self] in self?.decideAgain(fields, $0, since: record.start) }
    }

    private func decideAgain(
        _ fields: HPACKHeaders, _ begun: BegunRequest, since start: NIODeadline
    ) {
        guard !responder.isOver else { return }
        // It was read before, and asks for nothing unusual.
        guard let request = HTTPRequest(fields) else { return refuse(400, "The request is malformed.") }
        phase = .idle
        open(request, since: start)
        self.begun = begun
        decide(hasContent: false)
        connection.output.flush()
    }

    /// The head of a request.
    func receive(_ request: HTTPRequest, endsStream: Bool) throws(HTTP2Fault) {
        // Several, or what is not a number, are answered with 400.
        let lengths = request.headerFields[values: .contentLength]
        announced = lengths.count == 1 ? HTTP2RequestCheck.length(lengths[0]) : nil
        open(request, since: worker.core.time.now())
        if endsStream { try end() }
    }

    /// Content.
    /// - Parameter count: what the frame took of the window, in bytes.
    func receive(_ bytes: ByteBuffer, count: Int, endsStream: Bool) throws(HTTP2Fault) {
        guard !content.isComplete else { throw .stream(id, .streamClosed) }
        guard intake.take(count) else { throw .stream(id, .flowControlError) }
        take(bytes)
        guard !responder.isOver else { return }
        if let announced, content.received > announced { throw .stream(id, .protocolError) }
        if endsStream { try end() } else { askForMore() }
    }

    /// The request is complete: with a head, content, or trailers, which stay here.
    func end() throws(HTTP2Fault) {
        guard !content.isComplete else { throw .stream(id, .streamClosed) }
        if let announced, content.received != announced { throw .stream(id, .protocolError) }
        content.finish()
        decide(hasContent: false)
        closeWhenOver()
    }

    /// What came with the head has been read.
    func readComplete() {
        guard case .open(let request, _) = phase, !responder.isOver else { return }
        if let hasContent = HTTP2RequestCheck.announcesContent(request) { decide(hasContent: hasContent) }
    }

    private func closeWhenOver() {
        if output.hasEnded, content.isComplete { connection.end(self) }
    }

    /// The stream is closed.
    func leave() {
        guard !responder.isOver else { return }
        phase = .decided
        begun = nil
        responder.leave()
        scheduler.end(responder)
        scheduler.withdraw(self)
        output.close()
    }

    // MARK: Reading no faster than needed

    /// Lets the client send more, as far as there is room.
    private func askForMore() {
        guard !isWaiting, !content.isComplete, content.takesMore else { return }
        let count = intake.giveBack()
        if count > 0 { connection.output.write { $0.writeWindowUpdate(stream: id, by: count) } }
    }

    private var isWaiting: Bool { if case .waiting = phase { true } else { false } }

    // MARK: What is done about the request

    private func open(_ received: HTTPRequest, since start: NIODeadline) {
        guard case .idle = phase else { return }
        var request = received
        let method = request.method
        let refusal = HTTP2RequestCheck(limits: worker.core.configuration.limits).normalise(&request)
        let logged =
            worker.log == nil
            ? nil
            : LoggedRequest(
                client: connection.client, method: request.method.rawValue,
                target: request.path ?? request.authority ?? "", version: "HTTP/2.0",
                host: request.authority ?? "", referer: request.headerFields[.referer] ?? "",
                userAgent: request.headerFields[.userAgent] ?? "")
        let methodIndex = ServerCounters.methodIndex(method.rawValue)
        responder.begin(RequestRecord(start: start, methodIndex: methodIndex, logged: logged), method: method)
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
        guard begun?.mayWait == false || scheduler.hasMemoryForRequests() else {
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
            isAbsolute: true, isHTTP2: true, begun: begun)
        let place = begun?.place
        begun = nil
        switch core.decide(asked, by: worker.service) {
        case .answer(let answer): responder.write(answer)
        case .later(let work) where work.isLimited:
            forward(length: length, place) { responder.work(work, body: $0, place: $1) }
        case .later(let work): responder.work(work, body: nil, place: nil)
        case .tunnel: refuse(501, "This gateway does not open tunnels over HTTP/2.")
        }
    }

    /// Begins what needs the content of a request, where its client may have one more such request.
    /// - Parameter place: one that the request has already.
    private func forward(
        length: Int64?, _ place: ClientTable.Place?, _ begin: (RequestBody?, ClientTable.Place) -> Void
    ) {
        let address = connection.remoteAddress
        guard let place = place ?? worker.core.place(for: address, isLoopback: connection.isLoopback) else {
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
        guard !responder.isOver else { return }
        if content.isWanted() { responder.askForContent() }
        askForMore()
        connection.output.flush()
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

extension HTTP2Stream: HTTP2Applicant {
    func admit() {
        guard case .waiting(let request) = phase, !responder.isOver else { return }
        phase = .decided
        answer(request)
        content.release()
        askForMore()
    }
}

extension HTTP2Stream: HTTP2ResponderDelegate {
    func responderEnded() {
        if content.isComplete { return connection.end(self) }
        // What is left of the request may be on its way in the same read.
        let stream = NIOLoopBound(self, eventLoop: worker.eventLoop)
        worker.eventLoop.execute { stream.value.refuseTheRest() }
    }

    /// "A server MAY request that the client abort transmission of a request without error by sending a RST_STREAM with
    /// an error code of NO_ERROR after sending a complete response" (RFC 9113 section 8.1).
    private func refuseTheRest() {
        guard !content.isComplete, !responder.isOver else { return }
        responderFailed(.noError)
    }

    func responderFailed(_ code: HTTP2Code) {
        guard !responder.isOver else { return }
        connection.reset(id, code)
        connection.output.flush()
    }
}
