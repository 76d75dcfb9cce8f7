import HTTPTypes
import NIOCore

/// How far something had come when it was last looked at.
struct RateMark {
    var time: NIODeadline
    var bytes: Int64
}

/// Limits in time, and the gateway's end.
extension HTTP1Handler: SupervisedConnection {
    func tick(_ now: NIODeadline) {
        guard let context else { return }
        let limits = worker.core.configuration.limits
        switch phase {
        case .head:
            if let headBegan {
                if now - headBegan > TimeAmount(limits.headTimeout) {
                    worker.counters.timeouts += 1
                    refuse(408, "The head of the request did not arrive in time.", context)
                    flush(context)
                }
            } else if isStalled(outbound: true, now, context) {
                timeOut(context)
            } else if now - since > TimeAmount(limits.idleTimeout) {
                close(context)
            }
        case .exchange:
            if isStalled(outbound: true, now, context) { return timeOut(context) }
            guard isStalled(outbound: false, now, context) else { return }
            guard current?.hasBegun == false else { return timeOut(context) }
            worker.counters.timeouts += 1
            current?.inlet?.fail()
            delivery?.cancel()
            delivery = nil
            refuse(408, "The content of the request did not arrive in time.", context)
            flush(context)
        case .lingering:
            if isStalled(outbound: true, now, context) { return timeOut(context) }
            if outboundMark == nil, now - since > .seconds(2) { close(context) }
        case .tunnel:
            let bytes = bytesQueued &+ bytesReceived
            if inboundMark?.bytes != bytes {
                inboundMark = RateMark(time: now, bytes: bytes)
            } else if let inboundMark, now - inboundMark.time > TimeAmount(limits.tunnelIdleTimeout) {
                close(context)
            }
        case .over:
            break
        }
    }

    private func timeOut(_ context: ChannelHandlerContext) {
        worker.counters.timeouts += 1
        close(context)
    }

    /// Whether a client that is waited for has been too slow for as long as ``GatewayLimits/stallTimeout``.
    private func isStalled(outbound: Bool, _ now: NIODeadline, _ context: ChannelHandlerContext) -> Bool {
        let limits = worker.core.configuration.limits
        let isWaiting: Bool
        let bytes: Int64
        if outbound {
            // What the kernel has not taken; the channel counts it, files included.
            let held = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
            isWaiting = held > 0
            bytes = bytesQueued - Int64(held)
        } else {
            isWaiting = current?.content != nil && current?.owesContinue == false && (current?.inlet?.takesMore ?? true)
            bytes = bytesReceived
        }
        let path = outbound ? \HTTP1Handler.outboundMark : \HTTP1Handler.inboundMark
        guard isWaiting else {
            self[keyPath: path] = nil
            return false
        }
        guard let mark = self[keyPath: path] else {
            self[keyPath: path] = RateMark(time: now, bytes: bytes)
            return false
        }
        let elapsed = now - mark.time
        guard elapsed >= TimeAmount(limits.stallTimeout) else { return false }
        let least = Double(limits.minimumRate) * Double(elapsed.nanoseconds) / 1e9
        guard Double(bytes - mark.bytes) >= max(1, least) else { return true }
        self[keyPath: path] = RateMark(time: now, bytes: bytes)
        return false
    }

    func drain() {
        guard let context else { return }
        switch phase {
        case .head where headBegan == nil: closeWhenWritten(context)
        case .tunnel, .lingering: closeWhenWritten(context)
        case .head, .exchange: current?.closes = true
        case .over: break
        }
    }

    func abort() {
        guard let context else { return }
        close(context)
    }
}
