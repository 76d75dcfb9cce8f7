import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP2

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
    /// The end of the answer is written.
    private var hasEnded = false
    /// The stream is closed.
    private(set) var isOver = false

    init(
        _ worker: Worker, _ output: HTTP2StreamOutput, _ scheduler: HTTP2Scheduler,
        _ requestContent: HTTP2RequestContent
    ) {
        self.worker = worker
        self.output = output
        self.scheduler = scheduler
        self.requestContent = requestContent
    }

    /// About what the load behind the answer takes up, in bytes.
    /// - Parameter isMoving: whether the client took something lately.
    func loadBytes(isMoving: Bool) -> Int { delivery?.loadBytes(isMoving: isMoving) ?? 0 }

    /// Whether the answer waits for the stream's own window, or for memory that the client's other streams take.
    var waitsForWindow: Bool {
        guard hasBegun, !hasEnded else { return false }
        return hasUnsent && output.isOutOfWindow || (content.isEmpty && !scheduler.hasMemory())
    }

    private var canWrite: Bool { output.isAttached && !isOver }

    // MARK: Beginning

    /// A request has come.
    func begin(_ record: RequestRecord, method: HTTPRequest.Method) {
        self.record = record
        self.method = method
    }

    /// Tells a client that waits for it to send the content of its request.
    func askForContent() {
        guard canWrite, !hasBegun else { return }
        output.write(HTTPResponse(status: .continue))
        output.flush()
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
        writeHead(answer.head(at: worker.core.time.wallSeconds()), length: Int64(answer.body.count))
        send(method == .head ? HTTP2Content([]) : HTTP2Content(answer.body))
    }

    /// Writes a response of the service.
    func write(_ response: FetchResponse) {
        record?.source = response.source
        do {
            // Before the head: what cannot be read must not begin.
            let content = try HTTP2Content(response.body)
            let hasContent = answerHasContent(response.head.status.code)
            writeHead(response.head, length: response.body.length)
            send(hasContent ? content : HTTP2Content([]))
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

    private func writeHead(_ head: HTTPResponse, length: Int64?) {
        guard canWrite, !hasBegun else { return }
        let status = head.status.code
        var head = head.withoutConnectionFields
        if answerHasContent(status) {
            head.headerFields[.contentLength] = length.map { String($0) }
            left = length
        } else if status == 204 {
            // RFC 9110 section 8.6: "A server MUST NOT send a Content-Length header field in any response with a status
            // code of 1xx (Informational) or 204 (No Content)."
            head.headerFields[.contentLength] = nil
        }
        hasBegun = true
        record?.status = status
        output.write(head)
    }

    // MARK: Content

    private func send(_ content: HTTP2Content) {
        guard canWrite, hasBegun, !hasEnded else { return }
        self.content = content
        countMemory()
        if content.isEmpty, content.isComplete {
            end()
        } else {
            scheduler.begin(self)
            scheduler.send()
        }
        // The head, where there was no room for more.
        output.flush()
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
        hasEnded = true
        content.drop()
        countMemory()
        scheduler.end(self)
        requestContent.cutOff()
        output.end { self.isWritten($0) }
    }

    private func countMemory() { output.hold(waiting: content.memory, files: content.fileCost) }

    // MARK: Endings

    /// swift-nio-http2 has put content into a frame.
    func wroteFrame(_ count: Int64, isLast: Bool) {
        output.wroteFrame(count, isLast: isLast)
        guard isLast, !requestContent.isComplete else { return }
        let responder = NIOLoopBound(self, eventLoop: worker.eventLoop)
        worker.eventLoop.execute { responder.value.refuseTheRest() }
    }

    /// "A server MAY request that the client abort transmission of a request without error by sending a RST_STREAM with
    /// an error code of NO_ERROR after sending a complete response" (RFC 9113 section 8.1).
    private func refuseTheRest() {
        if !requestContent.isComplete, !isOver { output.reset(.noError) }
    }

    /// Everything is with the kernel, or will never be.
    private func isWritten(_ isTaken: Bool) {
        // Not even framed: the answer contradicts its own head.
        guard isTaken || isOver else { return fail(.internalError) }
        // The connection ended before: the client has left, or was too slow.
        finish(isCut: !isTaken)
    }

    /// The answer will not be complete: resets the stream.
    func fail(_ code: NIOHTTP2.HTTP2ErrorCode) {
        record?.isIncomplete = true
        finish(isCut: false)
        output.reset(code)
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
        content.drop()
        if !output.isEndFramed {
            output.dropQueued()
            finish(isCut: true)
        }
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
        let count = Int64(piece.count)
        if let left { self.left = left - count }
        output.write(piece) { isTaken in
            if isTaken { self.record?.bytesSent += count }
            self.countMemory()
        }
        countMemory()
        if content.isEmpty { if content.isComplete { end() } else { askForMore() } }
        return true
    }

    func flush() { output.flush() }
}

extension HTTP2Responder: DeliverySink {
    /// Whether another piece may be brought into memory. One is, without a window, where only it can tell that the
    /// content is over: a client need not open its window for an end.
    var takesMore: Bool {
        guard !isOver, content.isEmpty, scheduler.hasMemory() else { return false }
        guard let left else { return true }
        return left <= 0 || output.room > 0
    }

    func deliver(informational head: HTTPResponse) {
        guard output.isWritable, !hasBegun, head.status.code != 100, head.status.code != 101 else { return }
        var head = head.withoutConnectionFields
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

extension HTTPResponse {
    /// RFC 9113 section 8.2.2: fields of a connection make a message malformed.
    fileprivate var withoutConnectionFields: HTTPResponse {
        var head = self
        for name in [.connection, .transferEncoding, .keepAlive, .upgrade, .proxyConnection] as [HTTPField.Name] {
            head.headerFields[name] = nil
        }
        return head
    }
}

extension HTTPField.Name {
    static let proxyConnection = HTTPField.Name("Proxy-Connection")!
}
