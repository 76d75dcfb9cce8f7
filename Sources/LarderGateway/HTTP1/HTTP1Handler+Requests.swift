import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// Reading requests.
extension HTTP1Handler {
    private enum HeadStep {
        case incomplete
        case malformed(WireError)
        case head(RequestHead, length: Int)
        case hit(PlainAnswer, length: Int)
    }

    /// Goes on as far as the bytes and the client allow.
    func advance(_ context: ChannelHandlerContext) {
        // A flush in here may make the channel writable again, which leads back here: who is at it goes on.
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while true {
            switch phase {
            case .head:
                guard input.readableBytes > 0, canAnswer(context), phase == .head, takeHead(context) else { return }
            case .exchange:
                if current?.content != nil { takeContent(context) }
                guard finishExchange(context) else { return }
            case .lingering, .tunnel, .over:
                return
            }
        }
    }

    /// A client that sends requests and reads no answers gets no more of them.
    private func canAnswer(_ context: ChannelHandlerContext) -> Bool {
        if worker.output.readableBytes > Self.outputLimit { flush(context) }
        return context.channel.isWritable
    }

    /// Returns whether there was a whole head.
    private func takeHead(_ context: ChannelHandlerContext) -> Bool {
        let step: HeadStep = input.withUnsafeReadableBytes { bytes in
            do throws(WireError) {
                guard let range = try scanner.scan(bytes) else { return .incomplete }
                let head = UnsafeRawBufferPointer(rebasing: bytes[range])
                try worker.view.parse(head, limits: worker.core.headLimits)
                if let answer = writePlainHit(head) { return .hit(answer, length: range.upperBound) }
                return .head(try RequestHead(worker.view, in: head, scheme: scheme), length: range.upperBound)
            } catch {
                return .malformed(error)
            }
        }
        switch step {
        case .incomplete:
            if headBegan == nil, scanner.hasBegun { headBegan = worker.core.time.now() }
            if hasInputEnded { closeWhenWritten(context) }
            return false
        case .malformed(let error):
            worker.counters.malformedRequests += 1
            refuse(error.status, "The request is malformed: \(error).", context)
            return false
        case .head(let head, let length):
            take(length)
            handle(head, context)
            return true
        case .hit(let answer, let length):
            take(length)
            finish(answer, context)
            if phase == .head, input.readableBytes == 0 { becomeIdle(context) }
            return true
        }
    }

    private func take(_ length: Int) {
        scanner.reset()
        headBegan = nil
        input.moveReaderIndex(forwardBy: length)
    }

    /// What counters and log want to know of a plain GET.
    func plainRecord(_ head: UnsafeRawBufferPointer) -> RequestRecord {
        var record = RequestRecord(
            start: worker.core.time.now(), client: client, method: "", methodIndex: 0, target: "", version: "HTTP/1.1")
        if worker.log != nil {
            func text(_ range: Range<Int>?) -> String { range.map { String(decoding: head[$0], as: UTF8.self) } ?? "" }
            record.method = "GET"
            record.target = text(worker.view.target)
            record.host = text(worker.view.authority)
            record.referer = text(worker.view.first("referer", in: head)?.value)
            record.userAgent = text(worker.view.first("user-agent", in: head)?.value)
        }
        return record
    }

    private func handle(_ head: RequestHead, _ context: ChannelHandlerContext) {
        phase = .exchange
        requestCount += 1
        let limits = worker.core.configuration.limits
        let hasContent = head.framing != .none
        current = Current(
            record(of: head), method: head.request.method, version: head.version,
            closes: !head.persists || worker.isDraining || requestCount >= limits.requestsPerConnection,
            content: hasContent ? BodyDecoder(head.framing) : nil, owesContinue: head.expectsContinue)
        if case .length(let length) = head.framing, length > limits.bodyBytes {
            return refuse(413, "The content of the request is over the limit of \(limits.bodyBytes) bytes.", context)
        }
        var request = head.request
        // Content of no bytes says as much as none: some clients declare it with every GET.
        let decision = worker.core.decide(
            &request, hasContent: hasContent && head.framing != .length(0), isAbsolute: head.targetForm == .absolute,
            isLoopback: isLoopback)
        switch decision {
        case .own(let answer): write(answer, context)
        case .stored(let response): write(response, context)
        case .load(let pending): load(pending, head.framing, context)
        case .purge(let order): purge(order)
        case .tunnel(let host, let port): startTunnel(host, port, context)
        }
    }

    private func record(of head: RequestHead) -> RequestRecord {
        var record = RequestRecord(
            start: worker.core.time.now(), client: client, method: "", methodIndex: 0, target: "",
            version: head.version == .http11 ? "HTTP/1.1" : "HTTP/1.0")
        let request = head.request
        record.methodIndex = request.method == .get ? 0 : Counters.methodIndex(request.method.rawValue)
        if worker.log != nil {
            record.method = request.method.rawValue
            record.host = request.authority ?? ""
            switch head.targetForm {
            case .origin, .asterisk: record.target = request.path ?? ""
            case .authority: record.target = request.authority ?? ""
            case .absolute:
                record.target = "\(request.scheme ?? "")://\(request.authority ?? "")\(request.path ?? "")"
            }
            record.referer = request.headerFields[.referer] ?? ""
            record.userAgent = request.headerFields[.userAgent] ?? ""
        }
        return record
    }

    // MARK: Content

    private func load(_ pending: PendingLoad, _ framing: BodyFraming, _ context: ChannelHandlerContext) {
        var place: ClientTable.Place?
        let limits = worker.core.configuration.limits
        if limits.limitsLoopback || !isLoopback, let client = ClientAddress(context.remoteAddress) {
            place = worker.core.clients.place(for: client)
            guard place != nil else {
                return write(.retryLater(429, "Too many requests at once; try again later."), context)
            }
        }
        var body: RequestBody?
        if framing != .none {
            let loop = worker.eventLoop
            let handler = NIOLoopBound(self, eventLoop: loop)
            let inlet = BodyInlet(memory: worker.core.memory) {
                loop.execute { handler.value.contentWanted() }
            }
            if case .length(let length) = framing {
                body = inlet.body(length: length)
            } else {
                body = inlet.body(length: nil)
            }
            current?.inlet = inlet
        }
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        delivery.place = place
        delivery.load(
            pending, from: worker.core.cache, body: body, relaysInformational: current?.version == .http11)
    }

    /// The load asks for content: the client that waits for 100 gets it now, and not where the origin refuses the request
    /// before.
    private func contentWanted() {
        guard phase == .exchange, let context else { return }
        enter()
        if let current, current.owesContinue, !current.hasBegun, current.content != nil {
            self.current?.owesContinue = false
            if current.contentReceived == 0 {
                worker.output.writeStaticString("HTTP/1.1 100 Continue\r\n\r\n")
                flush(context)
            }
        }
        advance(context)
        flush(context)
        resumeReading(context)
    }

    /// Reads content as far as there is any and room for it.
    private func takeContent(_ context: ChannelHandlerContext) {
        guard var decoder = current?.content else { return }
        var isOver = false
        var failure: WireError?
        let inlet = current?.inlet
        var received: Int64 = 0
        let used = input.withUnsafeReadableBytes { bytes in
            var position = 0
            do throws(WireError) {
                loop: while inlet?.takesMore ?? true {
                    switch try decoder.next(bytes, at: &position) {
                    case .payload(let range):
                        received += Int64(range.count)
                        inlet?.offer(Array(bytes[range]))
                    case .needsMore: break loop
                    case .end:
                        isOver = true
                        break loop
                    }
                }
            } catch {
                failure = error
            }
            return position
        }
        input.moveReaderIndex(forwardBy: used)
        current?.content = isOver ? nil : decoder
        current?.contentReceived += received
        let limit = worker.core.configuration.limits.bodyBytes
        if let failure {
            worker.counters.malformedRequests += 1
            contentFailed(failure.status, "The request is malformed: \(failure).", context)
        } else if let current, current.contentReceived > limit {
            contentFailed(413, "The content of the request is over the limit of \(limit) bytes.", context)
        } else if isOver {
            inlet?.finish()
        } else if inlet == nil, let current, current.isAnswered, current.contentReceived > Self.discardLimit {
            // Nobody wants the rest, and it is shorter to connect again.
            closeInStages(context)
        }
    }

    private func contentFailed(_ status: Int, _ text: String, _ context: ChannelHandlerContext) {
        current?.inlet?.fail()
        delivery?.cancel()
        delivery = nil
        guard current?.hasBegun == true else { return refuse(status, text, context) }
        if current?.isAnswered == true { closeInStages(context) } else { close(context) }
    }

    // MARK: The end of an exchange

    /// When request and answer are complete, makes ready for the next. Returns whether there may be one.
    private func finishExchange(_ context: ChannelHandlerContext) -> Bool {
        guard let current, current.isAnswered else { return false }
        if current.content != nil {
            // An answer before the request was complete. A client that waits for 100 may or may not send content now.
            if current.closes || current.owesContinue { closeInStages(context) }
            return false
        }
        delivery = nil
        let closes = current.closes
        self.current = nil
        if closes {
            closeInStages(context)
            return false
        }
        phase = .head
        since = worker.core.time.now()
        if input.readableBytes == 0, !becomeIdle(context) { return false }
        resumeReading(context)
        return true
    }

    /// All requests that came are answered. Returns false if no more will come.
    @discardableResult
    private func becomeIdle(_ context: ChannelHandlerContext) -> Bool {
        if hasInputEnded {
            closeWhenWritten(context)
            return false
        }
        // The room is not kept for a client that is silent.
        input = ByteBuffer()
        return true
    }

    /// Answers what is no proper request, or more than is allowed, and closes.
    func refuse(_ status: Int, _ text: String, _ context: ChannelHandlerContext) {
        if current == nil {
            current = Current(
                RequestRecord(
                    start: worker.core.time.now(), client: client, method: "-",
                    methodIndex: Counters.methods.count - 1, target: "-", version: "HTTP/1.1"),
                method: .get, version: .http11, closes: true, content: nil, owesContinue: false)
        }
        phase = .exchange
        current?.closes = true
        write(OwnAnswer(status, text), context)
        closeInStages(context)
    }

    private static let discardLimit: Int64 = 256 << 10
    static let outputLimit = 64 << 10
}
