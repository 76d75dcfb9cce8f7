import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTPTypes

/// Writing the answer: its head at once, its content as the connection says (``HTTP2Connection/send()``).
extension HTTP2StreamHandler {
    /// Writes an answer of the gateway's own.
    func write(_ answer: OwnAnswer) {
        begin(answer.head(at: worker.core.time.wallSeconds()), length: Int64(answer.body.count))
        send(method == .head ? HTTP2Content([]) : HTTP2Content(answer.body))
    }

    /// Writes an answer of the cache.
    func write(_ response: FetchResponse) {
        record?.source = response.source
        do {
            // Before the head: what cannot be read must not begin.
            let content = try HTTP2Content(response.body)
            let hasContent = answerHasContent(response.head.status.code)
            begin(response.head, length: response.body.length)
            send(hasContent ? content : HTTP2Content([]))
        } catch {
            worker.core.logger.error("cannot read a stored body", metadata: ["error": "\(error)"])
            fail()
        }
    }

    /// Answers a request that cannot be answered as asked, or breaks off the answer that has begun.
    func refuse(_ status: Int, _ text: String) {
        inlet?.fail()
        inlet = nil
        delivery?.cancel()
        delivery = nil
        waitingRequest = nil
        early = []
        if hasBegun { fail() } else { write(OwnAnswer(status, text)) }
    }

    /// RFC 9110 section 6.4.1.
    private func answerHasContent(_ status: Int) -> Bool {
        method != .head && status >= 200 && status != 204 && status != 304
    }

    private func begin(_ head: HTTPResponse, length: Int64?) {
        guard let context, !hasBegun, !isOver else { return }
        let status = head.status.code
        var head = Self.clean(head)
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
        context.write(wrapOutboundOut(.head(head)), promise: nil)
    }

    /// RFC 9113 section 8.2.2: fields of a connection make a message malformed.
    private static func clean(_ head: HTTPResponse) -> HTTPResponse {
        var head = head
        for name in [.connection, .transferEncoding, .keepAlive, .upgrade, .proxyConnection] as [HTTPField.Name] {
            head.headerFields[name] = nil
        }
        return head
    }

    // MARK: Content

    private func send(_ content: HTTP2Content) {
        guard let context, hasBegun, !hasEnded, !isOver else { return }
        self.content = content
        account()
        if content.isEmpty, content.isComplete {
            end()
            context.flush()
        } else {
            connection.sends(self)
            connection.send()
            // The head, where there was no room for more.
            context.flush()
        }
    }

    /// Sends the next piece, of at most `room` bytes; asks for more where there is none. Returns whether something was
    /// written.
    func sendPiece(_ room: Int64) -> Bool {
        guard let context, hasBegun, !hasEnded, !isOver else { return false }
        guard let piece = content.next(Int(room)) else {
            if content.isEmpty { askForMore() }
            return false
        }
        let count = Int64(piece.count)
        willWrite(count)
        context.write(wrapOutboundOut(.body(context.channel.allocator.buffer(bytes: piece))))
            .assumeIsolated().whenComplete { result in
                if case .success = result {
                    self.didWrite(count, isTaken: true)
                } else {
                    self.didWrite(count, isTaken: false)
                }
            }
        account()
        if content.isEmpty { if content.isComplete { end() } else { askForMore() } }
        return true
    }

    /// Lets the source bring the next piece, where the client takes it.
    private func askForMore() {
        guard takesMore else { return }
        guard let source = content.source else { return delivery?.resume() ?? () }
        content.source = nil
        let delivery = self.delivery ?? Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.send(source)
    }

    /// The answer is complete.
    private func end() {
        guard let context, !hasEnded, !isOver else { return }
        hasEnded = true
        content.drop()
        account()
        connection.hasSent(self)
        inlet?.fail()
        inlet = nil
        context.write(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { result in
            if case .success = result { self.isWritten(true) } else { self.isWritten(false) }
        }
    }
}

extension HTTP2StreamHandler: DeliverySink {
    /// Whether another piece may be brought into memory. One is, without a window, where only it can tell that the
    /// content is over: a client need not open its window for an end.
    var takesMore: Bool {
        guard !isOver, content.isEmpty, connection.hasMemory else { return false }
        guard let left else { return true }
        return left <= 0 || connection.room(self) > 0
    }

    func deliver(informational head: HTTPResponse) {
        guard let context, !hasBegun, head.status.code != 100, head.status.code != 101 else { return }
        var head = Self.clean(head)
        head.headerFields[.contentLength] = nil
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
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
        account()
        connection.send()
    }

    func deliverEnd() {
        guard hasBegun, !hasEnded else { return }
        content.isComplete = true
        if content.isEmpty {
            end()
            flush()
        }
    }

    func deliverFailure() {
        if !hasEnded, !isOver { fail() }
    }
}

extension HTTPField.Name {
    static let proxyConnection = HTTPField.Name("Proxy-Connection")!
}
