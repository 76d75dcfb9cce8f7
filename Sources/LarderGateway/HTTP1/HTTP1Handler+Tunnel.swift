import HTTPTypes
import NIOCore

/// CONNECT.
extension HTTP1Handler {
    func startTunnel(_ host: String, _ port: Int, _ context: ChannelHandlerContext) {
        guard current?.content == nil else {
            return refuse(400, "CONNECT has no content.", context)
        }
        let tunnel = Tunnel(self)
        self.tunnel = tunnel
        tunnel.connect(
            host: host, port: port, timeout: worker.core.configuration.tunnels.connectTimeout, on: worker.eventLoop)
    }

    func tunnelFailed() {
        guard let context, phase == .exchange else { return }
        tunnel = nil
        worker.counters.upstreamErrors += 1
        refuse(502, "The host cannot be reached.", context)
        flush(context)
    }

    func tunnelStands() {
        guard let context, let current, phase == .exchange else { return }
        // "A server MUST NOT send any Transfer-Encoding or Content-Length header fields in a 2xx (Successful) response to
        // CONNECT" (RFC 9110 section 9.3.6).
        worker.output.writeStaticString("HTTP/1.1 200 Connection Established\r\n\r\n")
        current.record.status = 200
        worker.finished(current.record)
        worker.counters.tunnels += 1
        self.current = nil
        phase = .tunnel
        since = worker.core.time.now()
        flush(context)
        if input.readableBytes > 0 {
            tunnel?.send(input)
            input = ByteBuffer()
        }
        resumeReading(context)
        if hasInputEnded { tunnel?.clientFinished() }
    }

    func tunnelReceived(_ bytes: ByteBuffer) {
        guard let context, phase == .tunnel else { return }
        bytesQueued += Int64(bytes.readableBytes)
        worker.counters.bytesOut += UInt64(bytes.readableBytes)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    func tunnelPeerFinished() {
        guard let context, phase == .tunnel else { return }
        if isPlaintext, !hasInputEnded { context.close(mode: .output, promise: nil) } else { closeWhenWritten(context) }
    }

    func tunnelTakesMore() {
        guard let context else { return }
        resumeReading(context)
    }

    func tunnelOver() {
        guard let context else { return }
        tunnel = nil
        switch phase {
        case .tunnel: closeWhenWritten(context)
        case .exchange: tunnelFailed()
        default: break
        }
    }
}
