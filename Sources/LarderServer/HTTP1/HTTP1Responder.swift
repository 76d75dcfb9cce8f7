import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import NIOCore

/// What a responder asks of the connection that it answers on.
protocol HTTP1ResponderDelegate: AnyObject {
    /// An answer has advanced: what waited for it can continue.
    func responderCameOn()
    /// More or less is in memory for the client.
    func responderMemoryChanged()
    /// The answer cannot be completed.
    /// - Parameter resets: whether the client would take the connection's end for the answer's.
    func responderFailed(resets: Bool)
}

/// Answers one request after the other: writes what is there at once, and what comes later as it comes.
final class HTTP1Responder {
    /// From this size on a piece has a buffer to itself: together with a head it would take one of twice the size.
    private static let ownBuffer = 8 << 10
    /// What of content is written at once: a piece as it comes from an origin.
    private static let writeBytes = 64 << 10

    let worker: Worker
    private let output: HTTP1Output
    private let isPlaintext: Bool
    private weak var delegate: (any HTTP1ResponderDelegate)?
    /// The request that is being read or answered.
    private(set) var current: CurrentRequest?
    /// Brings the answer, or its content.
    private var delivery: Delivery?
    /// Of content that arrives, what the channel has no room for.
    private var rest: ArraySlice<UInt8> = []
    /// Of content in memory that other answers share, what the channel has no room for.
    private var shared: (bytes: ByteBuffer, digest: Digest)?
    /// Damaged bodies that the store knew of when the connection began.
    private let damagedBodies: Int

    init(_ worker: Worker, _ output: HTTP1Output, isPlaintext: Bool) {
        self.worker = worker
        self.output = output
        self.isPlaintext = isPlaintext
        damagedBodies = worker.store.damagedBodies
    }

    func attach(_ delegate: any HTTP1ResponderDelegate) { self.delegate = delegate }

    /// Bytes of content that wait for room in the channel.
    var waitingBytes: Int { rest.count }

    /// What brings the content of the answer from an origin.
    var source: ClosedConnections.Source? { delivery?.source }

    /// About what the load behind the answer takes up, in bytes.
    /// - Parameter isMoving: whether the client took something lately.
    func loadBytes(isMoving: Bool) -> Int {
        (current?.content?.heldBytes ?? 0) + (delivery?.loadBytes(isMoving: isMoving) ?? 0)
    }

    // MARK: Beginning

    /// A request has come.
    func begin(_ request: CurrentRequest) { current = request }

    /// Answers what cannot be answered as asked, or is not a valid request.
    func refuse(_ status: Int, _ text: String) {
        current?.closes = true
        write(OwnAnswer(status, text))
    }

    /// Lets a service answer.
    /// - Parameters:
    ///   - body: the content of the request.
    ///   - place: held until no more is asked for.
    func work(_ work: ServiceWork, body: RequestBody?, place: ClientTable.Place?) {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.place = place
        delivery.work(
            work, body: body, isHead: current?.method == .head, relaysInformational: current?.version == .http11)
    }

    /// Lets an origin answer.
    /// - Parameters:
    ///   - place: as for ``work(_:body:place:)``.
    ///   - otherwise: called if the service has to answer.
    func relay(_ relay: ServiceRelay, place: ClientTable.Place, otherwise: @escaping (BegunRequest) -> Void) {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.place = place
        delivery.relay(relay, otherwise: otherwise)
    }

    /// Writes an answer that is there.
    func write(_ answer: ServiceAnswer) {
        switch answer.dated(at: worker.core.time.wallSeconds()) {
        case .own(let own): write(own)
        case .response(let response): write(response)
        }
    }

    /// Tells a client that waits for it to send the content of its request.
    func askForContent() {
        guard let current, !current.hasBegun, current.content?.isWanted() == true else { return }
        worker.output.writeStaticString("HTTP/1.1 100 Continue\r\n\r\n")
        output.flush()
    }

    /// The host of a CONNECT is there: the connection is a tunnel from now on.
    func tunnelBegins() {
        guard let current else { return }
        // "A server MUST NOT send any Transfer-Encoding or Content-Length header fields in a 2xx (Successful) response
        // to CONNECT" (RFC 9110 section 9.3.6).
        worker.output.writeStaticString("HTTP/1.1 200 Connection Established\r\n\r\n")
        current.record.status = 200
        worker.finished(current.record)
        self.current = nil
    }

    // MARK: Answers

    /// Writes an answer of the gateway's own.
    func write(_ answer: OwnAnswer) {
        if answer.closes { current?.closes = true }
        writeHead(.objects(answer.head(at: worker.core.time.wallSeconds())), length: Int64(answer.body.count))
        if current?.method != .head { write(answer.body, count: answer.body.count) }
        finish()
    }

    /// Writes a response of the service: all of it, if it is there, or its head, and the rest as it comes.
    func write(_ response: FetchResponse) {
        guard writeHead(of: response) else { return }
        guard case .segments(let segments) = response.body.source, isImmediate(segments) else {
            let delivery = self.delivery ?? Delivery(worker.eventLoop, to: self)
            self.delivery = delivery
            delivery.send(response.body)
            return
        }
        do {
            for segment in segments { try write(segment) }
            finish()
        } catch {
            worker.core.logger.error(
                "cannot read a stored body", metadata: ["category": "requests", "error": "\(error)"])
            fail()
        }
    }

    /// Writes the head of a response of the service. Returns whether content has to follow.
    private func writeHead(of response: FetchResponse) -> Bool {
        current?.record.source = response.source
        guard writeHead(response.form, length: response.body.length) else {
            current?.record.source = nil
            write(OwnAnswer(502, "The origin's response cannot be passed on."))
            return false
        }
        guard current?.answerHasContent(response.form.status.code) == true else {
            finish()
            return false
        }
        return true
    }

    /// Writes the head of the final answer. Returns false, having written nothing, if it cannot be written.
    @discardableResult
    private func writeHead(_ head: HeadForm, length: Int64?) -> Bool {
        guard let current else { return false }
        // A client that met a damaged body gets no more on this connection.
        if worker.store.damagedBodies != damagedBodies { current.closes = true }
        worker.scratch.removeAll(keepingCapacity: true)
        do throws(WireError) {
            current.begin(try ResponseHeadWriter.append(head, length: length, to: current, into: &worker.scratch))
        } catch {
            return false
        }
        worker.output.writeBytes(worker.scratch)
        return true
    }

    private func isImmediate(_ segments: [ResponseBody.Segment]) -> Bool {
        !segments.contains { $0.isDecodedLater }
            && (isPlaintext || segments.reduce(0) { $0 + $1.count } <= HTTP1Output.smallFile)
    }

    private func write(_ segment: ResponseBody.Segment) throws {
        switch segment {
        case .bytes(let bytes): write(bytes, count: bytes.count)
        case .stored(let stored, let range):
            current?.record.bytesSent += range.upperBound - range.lowerBound
            try output.write(stored, range)
        }
    }

    private func write(_ bytes: some Sequence<UInt8>, count: Int) {
        guard count > 0 else { return }
        current?.record.bytesSent += Int64(count)
        worker.output.writeBytes(bytes)
    }

    // MARK: Content that arrives

    /// Writes of a piece what the channel takes: what waits for a slow client should be in one place only.
    /// - Returns: whether something had waited.
    @discardableResult
    func writeRest() -> Bool {
        if shared != nil {
            writeShared()
            return true
        }
        guard !rest.isEmpty else { return false }
        while !rest.isEmpty, output.isWritable {
            let part = rest.prefix(Self.writeBytes)
            rest = rest.dropFirst(part.count)
            writePiece(part)
            output.flush()
        }
        // An empty slice holds on to the piece.
        if rest.isEmpty { rest = [] }
        return true
    }

    /// Sends content behind a head that is written, as the client takes it.
    func send(_ bytes: ByteBuffer, sharedAs digest: Digest) {
        guard let current else { return }
        current.begin(
            ResponseHeadWriter.Written(status: current.record.status, closes: current.closes, isChunked: false))
        current.record.bytesSent = 0
        worker.lend(digest, bytes.readableBytes)
        shared = (bytes, digest)
        writeShared()
    }

    private func writeShared() {
        while output.isWritable, let (bytes, digest) = shared {
            var left = bytes
            guard let part = left.readSlice(length: min(bytes.readableBytes, Self.writeBytes)) else { return }
            current?.record.bytesSent += Int64(part.readableBytes)
            let isLast = left.readableBytes == 0
            if isLast { dropShared() } else { shared = (left, digest) }
            output.write(part)
            if isLast { finish() }
            // It may lead back here.
            output.flush()
        }
    }

    private func dropShared() {
        if let shared { worker.takeBack(shared.digest) }
        shared = nil
    }

    /// The client takes more.
    func resume() { delivery?.resume() }

    private func writePiece(_ bytes: ArraySlice<UInt8>) {
        guard !bytes.isEmpty else { return }
        let isChunked = current?.isChunked == true
        if isChunked {
            worker.scratch.removeAll(keepingCapacity: true)
            MessageWriter.appendChunkStart(count: bytes.count, to: &worker.scratch)
            worker.output.writeBytes(worker.scratch)
        }
        if bytes.count < Self.ownBuffer {
            write(bytes, count: bytes.count)
        } else {
            current?.record.bytesSent += Int64(bytes.count)
            output.write(piece: bytes)
        }
        if isChunked { worker.output.writeBytes(MessageWriter.chunkEnd) }
        output.handOver(isTracked: true)
    }

    // MARK: Endings

    /// The answer is complete.
    private func finish() {
        guard let current, !current.isAnswered else { return }
        if current.isChunked { worker.output.writeBytes(MessageWriter.lastChunk) }
        current.end()
        output.answered(current.record)
    }

    /// The answer will not be complete: the client sees that by the connection's end. Where that is how a complete
    /// answer ends, too, it has to be a reset.
    private func fail() {
        guard let current, !current.isAnswered else { return }
        dropShared()
        current.record.isIncomplete = true
        output.answered(current.record)
        current.content?.cutOff()
        self.current = nil
        delegate?.responderFailed(resets: current.version == .http10)
    }

    /// Makes ready for the next request.
    func clear() {
        delivery = nil
        current = nil
    }

    /// The connection takes no more requests.
    func forget() { current = nil }

    /// Gives up the load behind the answer.
    func cancelLoad() {
        current?.content?.cutOff()
        delivery?.cancel()
        delivery = nil
    }

    /// The connection has ended.
    func leave() {
        rest = []
        dropShared()
        delivery?.cancel()
        delivery = nil
        if let current {
            current.content?.cutOff()
            if !current.isAnswered { output.logCut(current.record) }
        }
        current = nil
    }
}

/// Answers that come later.
extension HTTP1Responder: DeliverySink {
    var takesMore: Bool { rest.isEmpty && output.isWritable }
    var unacknowledgedBytes: Int { output.unacknowledgedBytes }

    func deliver(informational head: HTTPResponse) {
        guard output.context != nil, let current, !current.hasBegun, takesMore else { return }
        output.begin()
        worker.scratch.removeAll(keepingCapacity: true)
        guard ResponseHeadWriter.appendInterim(head, into: &worker.scratch) else { return }
        worker.output.writeBytes(worker.scratch)
        output.flush()
    }

    func deliver(_ answer: OwnAnswer) {
        guard output.context != nil, current != nil else { return }
        output.begin()
        write(answer)
        delegate?.responderCameOn()
    }

    func deliver(_ response: FetchResponse) -> Bool {
        guard output.context != nil, current != nil else { return false }
        output.begin()
        defer { delegate?.responderCameOn() }
        guard case .live = response.body.source else {
            write(response)
            return false
        }
        return writeHead(of: response)
    }

    func deliver(piece: [UInt8]) {
        guard output.context != nil, current != nil else { return }
        output.begin()
        rest = piece[...]
        writeRest()
        delegate?.responderMemoryChanged()
    }

    func deliverEnd() {
        guard output.context != nil else { return }
        output.begin()
        finish()
        delegate?.responderCameOn()
    }

    func deliverFailure() {
        guard output.context != nil else { return }
        fail()
    }
}
