import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// Answers the request of one stream: writes the head at once, and the content when ``HTTP2Scheduler`` gives it a turn.
/// On the event loop only.
final class HTTP2Responder {
    let worker: Worker
    private let output: HTTP2StreamOutput
    private let scheduler: HTTP2Scheduler
    /// The content of the request, which ends with the answer.
    private let requestContent: HTTP2RequestContent
    /// Until the request is counted and logged.
    private var record: RequestRecord?
    private var method = HTTPRequest.Method.get
    /// Brings the answer, or its content.
    private var delivery: Delivery?
    private var content = HTTP2Content()
    /// What was declared and is not written yet, in bytes; nil where the length is not known.
    private var left: Int64?
    /// The head of the final answer is written.
    private(set) var hasBegun = false
    private var hasEnded: Bool { output.hasEnded }
    /// The stream is closed.
    private(set) var isOver = false

    /// Who closes the stream.
    weak var delegate: (any HTTP2ResponderDelegate)?

    init(
        _ worker: Worker, _ output: HTTP2StreamOutput, _ scheduler: HTTP2Scheduler,
        _ requestContent: HTTP2RequestContent
    ) {
        self.worker = worker
        self.output = output
        self.scheduler = scheduler
        self.requestContent = requestContent
        output.responder = self
    }

    /// What brings the content of the answer from an origin.
    var source: ClosedConnections.Source? { delivery?.source }

    /// About what the load behind the answer takes up, in bytes.
    /// - Parameter isMoving: whether the client took something lately.
    func loadBytes(isMoving: Bool) -> Int { delivery?.loadBytes(isMoving: isMoving) ?? 0 }

    /// Whether the answer waits for the stream's own window, or for memory that the client's other streams take.
    var waitsForWindow: Bool {
        guard hasBegun, !hasEnded else { return false }
        return hasUnsent && output.isOutOfWindow || (content.isEmpty && !scheduler.hasMemory())
    }

    private var canWrite: Bool { output.isOpen && !isOver }

    // MARK: Beginning

    /// A request has come.
    func begin(_ record: RequestRecord, method: HTTPRequest.Method) {
        self.record = record
        self.method = method
    }

    /// The head of an answer is written already: content of this length follows.
    func resume(_ record: RequestRecord, _ content: HTTP2Content, length: Int64) {
        self.record = record
        hasBegun = true
        left = length
        send(content)
    }

    /// Tells a client that waits for it to send the content of its request.
    func askForContent() {
        guard canWrite, !hasBegun else { return }
        output.write(HTTPResponse(status: .continue))
        output.flush()
    }

    /// Lets an origin answer.
    /// - Parameters:
    ///   - place: as for ``work(_:body:place:)``.
    ///   - otherwise: called if the service has to answer.
    func relay(_ relay: ServiceRelay, place: ClientTable.Place, otherwise: @escaping (BegunRequest) -> Void) {
        let delivery = makeDelivery()
        delivery.place = place
        delivery.relay(relay, otherwise: otherwise)
    }

    /// Lets a service answer.
    /// - Parameters:
    ///   - body: the content of the request.
    ///   - place: held until no more is asked for.
    func work(_ work: ServiceWork, body: RequestBody?, place: ClientTable.Place?) {
        let delivery = makeDelivery()
        delivery.place = place
        delivery.work(work, body: body, isHead: method == .head, relaysInformational: true)
    }

    private func makeDelivery() -> Delivery {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        return delivery
    }

    /// Writes an answer that is there.
    func write(_ answer: ServiceAnswer) {
        switch answer.dated(at: worker.core.time.wallSeconds()) {
        case .own(let own): write(own)
        case .response(let response): write(response)
        }
    }

    // MARK: Answers

    /// Writes an answer of the gateway's own.
    func write(_ answer: OwnAnswer) {
        let content = HTTP2Content(method == .head ? [] : answer.body)
        begin(.objects(answer.head(at: worker.core.time.wallSeconds())), length: Int64(answer.body.count), content)
    }

    /// Writes a response of the service.
    func write(_ response: FetchResponse) {
        record?.source = response.source
        do {
            // Before the head: what cannot be read must not begin.
            let content = try HTTP2Content(response.body)
            let hasContent = answerHasContent(response.form.status.code)
            begin(response.form, length: response.body.length, hasContent ? content : HTTP2Content([]))
        } catch {
            worker.core.logger.error(
                "cannot read a stored body", metadata: ["category": "requests", "error": "\(error)"])
            fail(.internalError)
        }
    }

    /// Answers a request that cannot be answered as asked, or breaks off the answer that has begun.
    func refuse(_ status: Int, _ text: String) {
        requestContent.cutOff()
        delivery?.cancel()
        delivery = nil
        if hasBegun { fail(.internalError) } else { write(OwnAnswer(status, text)) }
    }

    /// RFC 9110 section 6.4.1.
    private func answerHasContent(_ status: Int) -> Bool {
        method != .head && status >= 200 && status != 204 && status != 304
    }

    /// Writes a head, with the end of the answer where nothing follows.
    private func begin(_ head: HeadForm, length: Int64?, _ content: HTTP2Content) {
        guard canWrite, !hasBegun else { return }
        let status = head.status.code
        let hasContent = answerHasContent(status)
        if hasContent { left = length }
        // RFC 9110 section 8.6: "A server MUST NOT send a Content-Length header field in any response with a status
        // code of 1xx (Informational) or 204 (No Content)."
        let declares = !hasContent && status != 204
        hasBegun = true
        record?.status = status
        let isAll = content.isEmpty && content.isComplete && left ?? 0 == 0
        output.write(head, length: hasContent ? length : nil, keepsLength: declares, endsStream: isAll)
        if isAll { ended() } else { send(content) }
        output.flush()
    }

    // MARK: Content

    private func send(_ content: HTTP2Content) {
        guard canWrite, hasBegun, !hasEnded else { return }
        self.content = content
        if let shared = content.shared { worker.lend(shared.digest, shared.count) }
        countMemory()
        if content.isEmpty, content.isComplete {
            end()
        } else {
            scheduler.begin(self)
            scheduler.send()
        }
    }

    /// Lets the source bring the next piece, where the client takes it.
    private func askForMore() {
        guard takesMore else { return }
        guard let source = content.source else { return delivery?.resume() ?? () }
        content.source = nil
        (delivery ?? makeDelivery()).send(source)
    }

    /// The answer is complete.
    private func end() {
        guard canWrite, !hasEnded else { return }
        // The answer contradicts its own head.
        guard left ?? 0 == 0 else { return fail(.internalError) }
        output.write(UnsafeRawBufferPointer(start: nil, count: 0), endsStream: true)
        ended()
    }

    /// The end of the answer is written.
    private func ended() {
        dropContent()
        countMemory()
        scheduler.end(self)
        requestContent.cutOff()
        delegate?.responderEnded()
    }

    private func countMemory() { output.hold(waiting: content.memory, files: content.fileCost) }

    private func dropContent() {
        if let shared = content.shared { worker.takeBack(shared.digest) }
        content.drop()
    }

    // MARK: Endings

    /// The kernel has taken a part of the answer, or it never will.
    func settled(_ count: Int64, isTaken: Bool) {
        if isTaken { record?.bytesSent += count }
        countMemory()
        // The connection ended before: the client has left, or was too slow.
        if output.hasEnded, !isTaken || output.isAllTaken { finish(isCut: !isTaken) }
    }

    /// The answer will not be complete: resets the stream.
    func fail(_ code: HTTP2Code) {
        record?.isIncomplete = true
        finish(isCut: false)
        delegate?.responderFailed(code)
    }

    /// Counts and logs the request.
    /// - Parameter isCut: whether the end of the stream or the connection cut the answer off.
    private func finish(isCut: Bool) {
        guard var record else { return }
        self.record = nil
        if isCut {
            if !scheduler.isCutOff { worker.counters.clientAborts += 1 }
            record.isIncomplete = true
        }
        worker.finished(record)
    }

    /// The stream is closed.
    func leave() {
        guard !isOver else { return }
        isOver = true
        delivery?.cancel()
        delivery = nil
        requestContent.cutOff()
        dropContent()
        if !output.hasEnded { finish(isCut: true) }
        countMemory()
    }
}

extension HTTP2Responder: HTTP2Sender {
    var room: Int64 { output.room }

    var hasUnsent: Bool { !content.isEmpty || content.source != nil || left ?? 0 > 0 }

    func sendPiece(_ room: Int64) -> Bool {
        guard canWrite, hasBegun, !hasEnded else { return false }
        guard let piece = content.next(Int(room)) else {
            if content.isEmpty { askForMore() }
            return false
        }
        if let left { self.left = left - Int64(piece.count) }
        guard left ?? 0 >= 0 else {
            fail(.internalError)
            return false
        }
        let isEnd = content.isComplete && content.isEmpty && left ?? 0 == 0
        piece.withBytes { output.write($0, endsStream: isEnd) }
        countMemory()
        if isEnd {
            ended()
        } else if content.isEmpty {
            if content.isComplete { end() } else { askForMore() }
        }
        return true
    }
}

extension HTTP2Responder: DeliverySink {
    /// Whether another piece may be brought into memory. One is, without a window, where only it can tell that the
    /// content is over: a client need not open its window for an end.
    var takesMore: Bool {
        guard !isOver, content.isEmpty, scheduler.hasMemory() else { return false }
        guard let left else { return true }
        return left <= 0 || output.room > 0
    }

    /// Of all streams of the connection.
    var unacknowledgedBytes: Int { output.unacknowledgedBytes }

    func deliver(informational head: HTTPResponse) {
        guard output.isWritable, !hasBegun, head.status.code != 100, head.status.code != 101 else { return }
        var head = head
        head.headerFields[.contentLength] = nil
        output.write(head)
        output.flush()
    }

    func deliver(_ answer: OwnAnswer) {
        if record != nil, !hasBegun { write(answer) }
    }

    /// Content that arrives is asked for when the client takes it.
    func deliver(_ response: FetchResponse) -> Bool {
        if record != nil, !hasBegun { write(response) }
        return false
    }

    func deliver(piece: [UInt8]) {
        guard !hasEnded, !isOver else { return }
        content.append(piece)
        countMemory()
        scheduler.send()
    }

    func deliverEnd() {
        guard hasBegun, !hasEnded else { return }
        content.isComplete = true
        if content.isEmpty {
            end()
            output.flush()
        }
    }

    func deliverFailure() {
        if !hasEnded, !isOver { fail(.internalError) }
    }
}

/// What a responder needs of its stream.
protocol HTTP2ResponderDelegate: AnyObject {
    /// The end of the answer is written.
    func responderEnded()
    /// The answer will not be complete.
    func responderFailed(_ code: HTTP2Code)
}
