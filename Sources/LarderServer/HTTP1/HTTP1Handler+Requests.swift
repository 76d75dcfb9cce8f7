import HTTPWire
import LarderHTTP
import NIOCore

/// What is done about a request.
extension HTTP1Handler {
    /// - Parameters:
    ///   - begun: what was begun without a task.
    ///   - start: when the request came; nil: now.
    func accept(_ head: RequestHead, _ begun: BegunRequest? = nil, since start: NIODeadline? = nil) {
        let limits = worker.core.configuration.limits
        let hasContent = head.framing != .none
        let content =
            hasContent
            ? RequestContent(head.framing, owesContinue: head.expectsContinue, limit: limits.bodyBytes) : nil
        let record = RequestRecord(
            head, client: client, start: start ?? worker.core.time.now(), isLogged: worker.log != nil)
        begin(
            CurrentRequest(
                record, method: head.request.method, version: head.version,
                closes: !head.persists || worker.isDraining || requestCount + 1 >= limits.requestsPerConnection,
                content: content))
        if case .length(let length) = head.framing, length > limits.bodyBytes {
            return refuse(413, "The content of the request is over the limit of \(limits.bodyBytes) bytes.")
        }
        // Content of no bytes says as much as none: some clients declare it with every GET.
        var length: Int64?
        if case .length(let declared) = head.framing { length = declared }
        let request = ServiceRequest(
            head: head.request, hasContent: hasContent && head.framing != .length(0), contentLength: length,
            isLoopback: isLoopback, isAbsolute: head.targetForm == .absolute, isHTTP2: false,
            begun: begun)
        switch worker.core.decide(request, by: worker.service) {
        case .answer(let answer): responder.write(answer)
        case .later(let work) where work.isLimited:
            forward(length, content, begun?.place) { responder.work(work, body: $0, place: $1) }
        case .later(let work): responder.work(work, body: nil, place: nil)
        case .tunnel(let host, let port, let timeout): openTunnel(host, port, timeout)
        }
    }

    /// Lets an origin answer a request without content, or the service, if that does not work.
    /// - Parameter head: that of the request.
    func relay(_ relay: ServiceRelay, _ head: [UInt8]) {
        // The service refuses it where there is no room, and counts it.
        guard worker.core.memory.hasRoom,
            let place = worker.core.place(for: remoteAddress, isLoopback: isLoopback, isRefused: false)
        else { return acceptNow(head, BegunRequest(load: relay.work.unstarted(), place: nil)) }
        responder.relay(relay, place: place) { [weak self] in self?.acceptAgain(head, $0) }
    }

    private func acceptAgain(_ bytes: [UInt8], _ begun: BegunRequest) {
        guard phase == .exchange, output.context != nil else { return }
        output.begin()
        acceptNow(bytes, begun)
        goOn()
    }

    /// In the call that reads requests, or one that has begun the output.
    private func acceptNow(_ bytes: [UInt8], _ begun: BegunRequest) {
        let head = bytes.withUnsafeBytes { bytes in
            Result { () throws(WireError) in
                try worker.view.parse(bytes, limits: worker.core.headLimits)
                return try RequestHead(worker.view, in: bytes, scheme: scheme)
            }
        }
        // It was read before.
        guard case .success(let head) = head else { return close() }
        requestCount -= 1
        accept(head, begun, since: responder.current?.record.start)
    }

    /// Begins what needs the content of a request, where its client may have one more such request.
    /// - Parameter place: one that the request has already.
    private func forward(
        _ length: Int64?, _ content: RequestContent?, _ place: ClientTable.Place?,
        _ begin: (RequestBody?, ClientTable.Place) -> Void
    ) {
        guard let place = place ?? worker.core.place(for: remoteAddress, isLoopback: isLoopback) else {
            return responder.write(OwnAnswer.tooManyRequests)
        }
        var body: RequestBody?
        if let content {
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

    /// The service asks for content: the client that waits for 100 gets it now, and not where it refuses the
    /// request before.
    private func contentWanted() {
        guard phase == .exchange, output.context != nil else { return }
        output.begin()
        responder.askForContent()
        goOn()
    }

    func takeContent(of request: CurrentRequest) {
        guard let content = request.content else { return }
        switch input.read(into: content, isAnswered: request.isAnswered) {
        case .incomplete: break
        case .complete: request.completed = worker.core.time.now()
        case .malformed(let error):
            worker.counters.malformedRequests += 1
            contentFailed(error.status, "The request is malformed: \(error).")
        case .tooLong:
            let limit = worker.core.configuration.limits.bodyBytes
            contentFailed(413, "The content of the request is over the limit of \(limit) bytes.")
        case .notWorthReading: closeInStages()
        }
    }

    private func contentFailed(_ status: Int, _ text: String) {
        responder.cancelLoad()
        guard let current = responder.current, current.hasBegun else { return refuse(status, text) }
        if current.isAnswered { closeInStages() } else { cutOff() }
    }
}
