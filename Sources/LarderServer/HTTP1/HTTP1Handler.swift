import HTTPWire
import LarderHTTP
import NIOCore

/// A client connection that speaks HTTP/1.1: takes the channel's events, and moves from one phase to the next.
///
/// Requests are read, answered and followed by the next in order; what is in the store is answered before the read
/// returns. Everything that came in one read goes out in one write, as far as it is in memory.
///
/// Each owner below keeps its own state: ``HTTP1Input`` what has come, ``HTTP1Responder`` the request that is being
/// answered, ``HTTP1Output`` what goes out, ``HTTP1Deadlines`` the limits in time.
final class HTTP1Handler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// How long after its request a client may end its side and still get the answer.
    private static let halfClosureTime = TimeAmount.seconds(1)
    /// What is held before the channel gets it, in bytes.
    private static let outputLimit = 64 << 10

    let worker: Worker
    let input: HTTP1Input
    let output: HTTP1Output
    let responder: HTTP1Responder
    private let plainHits: PlainHits
    let scheme: String
    /// TLS takes no files, and cannot end one direction.
    let isPlaintext: Bool

    private(set) var phase = HTTP1Phase.head
    private var tunnel: Tunnel?
    private var deadlines: HTTP1Deadlines
    var requestCount = 0
    private(set) var client = "-"
    private(set) var isLoopback = false
    private var hasPendingRead = false
    private var isAdvancing = false
    /// The connection, or this side of it, ends when all is written.
    private var isEnding = false
    /// What the memory budget counts for this connection, in bytes.
    private(set) var heldBytes = 0
    private var clientProgress = ClientProgress()

    init(_ worker: Worker, isPlaintext: Bool) {
        self.worker = worker
        self.isPlaintext = isPlaintext
        scheme = isPlaintext ? "http" : "https"
        input = HTTP1Input(worker.core.headLimits)
        output = HTTP1Output(worker)
        responder = HTTP1Responder(worker, output, isPlaintext: isPlaintext)
        plainHits = PlainHits(worker, output, isPlaintext: isPlaintext)
        deadlines = HTTP1Deadlines(worker.core.time.now())
        responder.attach(self)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        output.attach(context, isPlaintext: isPlaintext)
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard client == "-" else { return }
        client = context.channel.remoteAddress?.ipAddress ?? "local"
        isLoopback = context.channel.remoteAddress?.isLoopback ?? false
        worker.add(self)
        if worker.isDraining { close() }
    }

    func handlerRemoved(context: ChannelHandlerContext) { output.detach() }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        output.begin()
        // What is held goes to this client before anything else can happen on the event loop.
        defer { output.send() }
        var bytes = unwrapInboundIn(data)
        worker.counters.bytesIn += UInt64(bytes.readableBytes)
        input.receive(bytes.readableBytes)
        switch phase {
        case .tunnel:
            tunnel?.send(bytes)
        case .head, .exchange:
            input.keep(&bytes)
            advance()
        case .lingering, .over:
            break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        output.flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            if responder.writeRest(), heldBytes > 0 { countMemory() }
            responder.resume()
            tunnel?.clientTakesMore()
            goOn()
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        inputEnded()
    }

    /// The client sends no more. Between requests it has left. While it waits for an answer, the gateway cannot know: a
    /// client that closes its socket sends the same packet as one that only closes one direction of it. One that does
    /// so right after its request, as `printf ... | nc` does, gets its answer; later, it has given up, and the origin
    /// need not work for it.
    private func inputEnded() {
        input.end()
        if output.hasUnsent || responder.current != nil { output.noteTaken() }
        switch phase {
        // Requests that wait until the client takes more are answered first.
        case .head: if input.isEmpty { closeWhenWritten() } else { goOn() }
        case .exchange:
            if let current = responder.current, !current.isAnswered {
                if current.isIncomplete {
                    // The rest of its content has come, and waits until it is wanted.
                    if !input.isEmpty { return }
                } else if current.hasBegun || worker.core.time.now() - current.completed <= Self.halfClosureTime {
                    return
                }
                responder.cancelLoad()
            }
            // Behind the answers to earlier requests.
            closeWhenWritten()
        case .lingering: if !isEnding { closeWhenWritten() }
        case .tunnel: tunnel?.clientFinished()
        case .over: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Of the connection or of TLS: there is no way to tell the client.
        close()
    }

    // MARK: Reading no faster than needed

    func read(context: ChannelHandlerContext) {
        if wantsToRead { context.read() } else { hasPendingRead = true }
    }

    func resumeReading() {
        guard hasPendingRead, wantsToRead, let context = output.context else { return }
        hasPendingRead = false
        context.read()
    }

    private var wantsToRead: Bool {
        switch phase {
        case .head: output.isWritable
        case .exchange:
            if let current = responder.current, current.isIncomplete {
                current.content?.takesMore ?? true
            } else {
                // To see the client leave; what it sends meanwhile waits, up to a limit.
                input.hasRoomForMore
            }
        case .tunnel: tunnel?.takesMore ?? true
        case .lingering, .over: true
        }
    }

    // MARK: From one request to the next

    /// Continues with what waited.
    func goOn() {
        advance()
        output.flush()
        resumeReading()
    }

    /// Continues as far as the bytes and the client allow.
    private func advance() {
        // A flush in here may make the channel writable again, which leads back here: the first call does the work.
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while true {
            switch phase {
            case .head:
                guard !input.isEmpty, canAnswer(), phase == .head, takeHead() else { return }
            case .exchange:
                if let current = responder.current, current.isIncomplete {
                    takeContent(of: current)
                    if phase == .exchange, input.hasEnded, input.isEmpty, current.isIncomplete { return inputEnded() }
                }
                guard finishExchange() else { return }
            case .lingering, .tunnel, .over:
                return
            }
        }
    }

    /// A client that sends requests and reads no answers gets no more of them.
    private func canAnswer() -> Bool {
        if worker.output.readableBytes > Self.outputLimit { output.flush() }
        return output.isWritable
    }

    /// Returns whether there was a whole head.
    private func takeHead() -> Bool {
        let next = input.nextHead(worker, scheme: scheme) { head in
            requestCount + 1 < worker.core.configuration.limits.requestsPerConnection
                ? plainHits.write(head, client: client) : nil
        }
        switch next {
        case .incomplete:
            if input.hasEnded { closeWhenWritten() }
            return false
        case .malformed(let error):
            worker.counters.malformedRequests += 1
            refuse(error.status, "The request is malformed: \(error).")
            return false
        case .request(let head):
            accept(head)
            return true
        case .hit(let answer):
            switch answer.content {
            case .paced(let bytes, let digest):
                begin(CurrentRequest(answer))
                responder.send(bytes, sharedAs: digest)
                return true
            case .relayed(let relay, let head):
                begin(CurrentRequest(answer))
                self.relay(relay, head)
                return true
            default: break
            }
            requestCount += 1
            deadlines.restart(answer.record.start)
            if !plainHits.finish(answer) {
                closeWhenWritten()
            } else if answer.closes {
                closeInStages()
            }
            if phase == .head, input.isEmpty { becomeIdle() }
            return true
        }
    }

    /// When request and answer are complete, makes ready for the next. Returns whether there may be one.
    private func finishExchange() -> Bool {
        guard let current = responder.current, current.isAnswered else { return false }
        if current.isIncomplete {
            // An answer before the request was complete. A client that waits for 100 may or may not send content now.
            if current.closes || current.mayNeverBeComplete { closeInStages() }
            return false
        }
        responder.clear()
        if current.closes {
            closeInStages()
            return false
        }
        phase = .head
        deadlines.restart(worker.core.time.now())
        if input.isEmpty, !becomeIdle() { return false }
        resumeReading()
        return true
    }

    /// All requests that came are answered. Returns false if no more will come.
    @discardableResult
    private func becomeIdle() -> Bool {
        if input.hasEnded {
            closeWhenWritten()
            return false
        }
        input.release()
        return true
    }

    /// A request has come.
    func begin(_ request: CurrentRequest) {
        phase = .exchange
        requestCount += 1
        responder.begin(request)
    }

    /// A tunnel is being opened for the request, or there is none any more.
    func use(_ tunnel: Tunnel?) { self.tunnel = tunnel }

    /// The request is answered, and bytes pass in both directions from now on.
    func beginTunnel() {
        phase = .tunnel
        deadlines.restart(worker.core.time.now())
        output.flush()
        if !input.isEmpty { tunnel?.send(input.takeAll()) }
        resumeReading()
        if input.hasEnded { tunnel?.clientFinished() }
    }

    // MARK: Endings

    /// Answers what is not a valid request, or more than is allowed, and closes.
    func refuse(_ status: Int, _ text: String) {
        if responder.current == nil {
            responder.begin(
                CurrentRequest(
                    RequestRecord(
                        unreadableFrom: client, start: worker.core.time.now(), isLogged: worker.log != nil),
                    method: .get, version: .http11, closes: true, content: nil))
        }
        phase = .exchange
        responder.refuse(status, text)
        closeInStages()
    }

    /// Writes what is held, tells the client that nothing follows, and closes when it has had time to read.
    ///
    /// RFC 9112 section 9.6: a server that closes while the client is still sending makes the client's system throw
    /// away what it has received; so "servers typically close a connection in stages". Many clients read the answer
    /// only when they have sent everything, so all of it is read, for as long as `HTTP1Deadlines` allows.
    func closeInStages() {
        guard phase != .lingering, phase != .over else { return }
        let isSending = responder.current?.isIncomplete == true
        phase = .lingering
        responder.forget()
        deadlines.restart(worker.core.time.now())
        input.clear()
        guard isPlaintext || isSending, !input.hasEnded else { return closeWhenWritten() }
        output.flush()
        if isPlaintext { finishOutput() }
        resumeReading()
    }

    /// Closes when everything is with the system.
    func closeWhenWritten() {
        guard phase != .over else { return }
        phase = .lingering
        isEnding = true
        deadlines.restart(worker.core.time.now())
        output.whenWritten { self.close() }
    }

    /// Tells the client that nothing follows, behind all that is written.
    private func finishOutput() {
        isEnding = true
        output.finish { [self] in
            isEnding = false
            if input.hasEnded { close() }
        }
    }

    func close() {
        leave()
        output.close()
    }

    /// Closes because the gateway wants it: what that cuts off is not counted as a client that left.
    func cutOff() {
        output.isCutOff = true
        close()
    }

    /// Everything that ends with the connection.
    func leave() {
        guard phase != .over else { return }
        if output.hasUnsent || responder.current != nil { output.noteTaken() }
        phase = .over
        tunnel?.clientLeft()
        tunnel = nil
        responder.leave()
        output.logUnsent()
        setHeld(0)
        worker.remove(self)
    }

    // MARK: Memory

    /// Brings the memory budget up to date. The write of a piece may have ended the connection.
    private func countMemory() { setHeld(phase == .over ? 0 : output.heldBytes + input.count + responder.waitingBytes) }

    private func setHeld(_ count: Int) {
        worker.core.memory.add(count - heldBytes)
        heldBytes = count
    }

    // MARK: Progress

    /// Sees how far the client has come, and what is late.
    func look(_ now: NIODeadline) -> HTTP1Deadlines.Verdict {
        let current = responder.current
        let pending = output.pendingBytes
        clientProgress.look(moved: moved(pending: pending))
        if output.hasUnsent || current?.hasBegun == true { output.noteTaken() }
        countMemory()
        let situation = HTTP1Deadlines.Situation(phase, input, output, current, pending: pending)
        let limits = worker.core.configuration.limits
        return deadlines.check(situation, now, limits) { output.unacknowledgedBytes }
    }

    /// Bytes that the client has taken, and sent as content, since the look before last.
    var progress: Int64 {
        clientProgress.bytes(moved: output.context == nil ? nil : moved(pending: output.pendingBytes))
    }

    /// Heads do not count: any client can send them.
    private func moved(pending: Int) -> Int64 {
        output.queuedBytes - Int64(pending) + (responder.current?.content?.received ?? 0)
    }
}

extension HTTP1Handler: HTTP1ResponderDelegate {
    func responderCameOn() { goOn() }

    func responderMemoryChanged() { countMemory() }

    func responderFailed(resets: Bool) {
        phase = .lingering
        if !resets || !output.whenResetting({ self.close() }) { closeWhenWritten() }
    }
}
