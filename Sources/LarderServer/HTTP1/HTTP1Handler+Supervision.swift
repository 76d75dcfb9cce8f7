import NIOCore

/// Limits in time, and the gateway's end.
extension HTTP1Handler: SupervisedConnection {
    /// The channel knows it; the context asks the system.
    var remoteAddress: SocketAddress? { output.context?.channel.remoteAddress }

    func footprint(progress: Int64) -> Int {
        heldBytes + output.lentBytes + responder.loadBytes(isMoving: progress > 0)
    }

    var sources: [ClosedConnections.Source] { responder.source.map { [$0] } ?? [] }

    func tick(_ now: NIODeadline) {
        guard output.context != nil else { return }
        if output.hasShortFile {
            worker.core.logger.error(
                "a stored body became shorter while it was sent", metadata: ["category": "requests"])
            return cutOff()
        }
        switch look(now) {
        case .inTime: break
        case .headIsLate: timeOut("The head of the request did not arrive in time.")
        case .contentIsLate: timeOut("The content of the request did not arrive in time.")
        case .isTooSlow: timeOut(nil)
        case .isIdle: cutOff()
        }
    }

    /// - Parameter text: what to tell a client whose request is late.
    private func timeOut(_ text: String?) {
        worker.counters.timeouts += 1
        guard let text, responder.current?.hasBegun != true else { return cutOff() }
        responder.cancelLoad()
        refuse(408, text)
        output.flush()
    }

    func drain() {
        guard output.context != nil else { return }
        switch phase {
        case .head where input.headBegan == nil: closeWhenWritten()
        case .tunnel, .lingering: closeWhenWritten()
        case .head, .exchange: responder.current?.closes = true
        case .over: break
        }
    }

    func abort() {
        guard output.context != nil else { return }
        cutOff()
    }

    func reset() {
        guard output.context != nil else { return }
        output.isCutOff = true
        leave()
        output.reset()
    }
}
