import NIOCore

/// CONNECT.
extension HTTP1Handler: TunnelClient {
    func openTunnel(_ host: String, _ port: Int, _ timeout: Duration) {
        guard responder.current?.content == nil else { return refuse(400, "CONNECT has no content.") }
        let tunnel = Tunnel(self)
        use(tunnel)
        tunnel.connect(host: host, port: port, timeout: timeout, on: worker.eventLoop)
    }

    var takesMore: Bool { output.isWritable }

    func tunnelFailed() {
        guard output.context != nil, phase == .exchange else { return }
        use(nil)
        worker.counters.upstreamErrors += 1
        refuse(502, "The host cannot be reached.")
        output.flush()
    }

    func tunnelStands() {
        guard output.context != nil, phase == .exchange, responder.current != nil else { return }
        responder.tunnelBegins()
        worker.counters.tunnels += 1
        beginTunnel()
    }

    func tunnelReceived(_ bytes: ByteBuffer) {
        if phase == .tunnel { output.pass(bytes) }
    }

    func tunnelPeerFinished() {
        guard output.context != nil, phase == .tunnel else { return }
        if isPlaintext, !input.hasEnded { output.finish() } else { closeWhenWritten() }
    }

    func tunnelTakesMore() { resumeReading() }

    func tunnelOver() {
        guard output.context != nil else { return }
        use(nil)
        switch phase {
        case .tunnel: closeWhenWritten()
        case .exchange: tunnelFailed()
        default: break
        }
    }
}
