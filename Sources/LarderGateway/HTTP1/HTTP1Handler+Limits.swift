import HTTPTypes
import NIOCore

/// How far something had come when it was last looked at.
struct RateMark {
    var time: NIODeadline
    var bytes: Int64
}

/// Limits in time, and the gateway's end.
extension HTTP1Handler: SupervisedConnection {
    var remoteAddress: SocketAddress? { context?.remoteAddress }
    var progress: Int64 {
        guard let context else { return lastProgress }
        return lastProgress + moved(pending: pendingBytes(context)) - movedAtLastLook
    }

    func footprint(progress: Int64) -> Int {
        heldBytes + lentBytes + (current?.inlet?.heldBytes ?? 0) + (delivery?.loadBytes(isMoving: progress > 0) ?? 0)
    }

    func tick(_ now: NIODeadline) {
        guard let context else { return }
        let pending = look(context)
        let limits = worker.core.configuration.limits
        switch phase {
        case .head:
            if let headBegan {
                if now - headBegan > TimeAmount(limits.headTimeout) {
                    worker.counters.timeouts += 1
                    refuse(408, "The head of the request did not arrive in time.", context)
                    flush(context)
                }
                return
            }
            let isIdle = now - since > TimeAmount(limits.idleTimeout)
            if isTooSlow(pending, countsSystem: isIdle, now, context) {
                timeOut(context)
            } else if isIdle, outboundMark == nil {
                close(context)
            }
        case .exchange:
            if isTooSlow(pending, now, context) { return timeOut(context) }
            if isContentLate(now) { contentIsLate(context) }
        case .lingering:
            if isTooSlow(pending, now, context) { return timeOut(context) }
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

    /// Sees how far the client has come. Returns what waits for it in the channel, in bytes.
    private func look(_ context: ChannelHandlerContext) -> Int {
        let pending = pendingBytes(context)
        let moved = moved(pending: pending)
        lastProgress = moved - movedAtLastLook
        movedAtLastLook = moved
        if !unsent.isEmpty || current?.hasBegun == true { noteTaken(context) }
        countMemory(context)
        return pending
    }

    /// Bytes that the client has taken, and sent as content. Heads do not count: any client can send them.
    private func moved(pending: Int) -> Int64 {
        bytesQueued - Int64(pending) + (current?.contentReceived ?? 0)
    }

    private func timeOut(_ context: ChannelHandlerContext) {
        worker.counters.timeouts += 1
        close(context)
    }

    // MARK: The response

    /// Whether a client is too far behind the least rate, or has had all the time there is for a response.
    ///
    /// What counts is what its system has acknowledged: our own takes some MB of a response at once, and no more for a long
    /// time. A system acknowledges in steps, as room for a good part of its buffer has to be free before it asks for
    /// more (RFC 9293 section 3.8.6.2.2). So a client may be some way behind. With every byte it moves the time by which it has done
    /// its part, which is never further ahead than that way takes at the least rate.
    /// - Parameters:
    ///   - pending: bytes that wait in the channel.
    ///   - countsSystem: whether those count that wait in the system only.
    private func isTooSlow(
        _ pending: Int, countsSystem: Bool = false, _ now: NIODeadline, _ context: ChannelHandlerContext
    ) -> Bool {
        guard pending > 0 || countsSystem else {
            outboundMark = nil
            return false
        }
        let unacknowledged = SendQueue.unacknowledged(context.channel)
        guard pending > 0 || unacknowledged > 0 else {
            outboundMark = nil
            return false
        }
        let limits = worker.core.configuration.limits
        let rate = Double(max(1, limits.minimumRate))
        let lead = Double(Self.steps) / rate
        let bytes = bytesQueued - Int64(pending) - Int64(unacknowledged)
        guard let mark = outboundMark else {
            outboundMark = RateMark(time: now + .rounding(lead), bytes: bytes)
            return false
        }
        let gained = min(lead, Double(max(0, bytes - mark.bytes)) / rate)
        let time = min(mark.time + .rounding(gained), now + .rounding(lead))
        outboundMark = RateMark(time: time, bytes: bytes)
        if let limit = limits.responseTimeout, let start = (unsent.first?.record ?? current?.record)?.start,
            now - start > TimeAmount(limit)
        {
            return true
        }
        return now - time > TimeAmount(limits.stallTimeout)
    }

    /// The largest steps in which systems acknowledge, over loopback with Linux, in bytes.
    private static let steps = 96 << 10

    // MARK: The content

    /// Whether content that is waited for has come too slowly for as long as ``GatewayLimits/stallTimeout``, or has had all
    /// the time there is.
    private func isContentLate(_ now: NIODeadline) -> Bool {
        let limits = worker.core.configuration.limits
        guard let current, current.content != nil else {
            inboundMark = nil
            return false
        }
        if now - current.record.start > TimeAmount(limits.contentTimeout) { return true }
        guard !current.owesContinue, current.inlet?.takesMore ?? true else {
            inboundMark = nil
            return false
        }
        guard let mark = inboundMark else {
            inboundMark = RateMark(time: now, bytes: bytesReceived)
            return false
        }
        let elapsed = now - mark.time
        guard elapsed >= TimeAmount(limits.stallTimeout) else { return false }
        let least = Double(limits.minimumRate) * Double(elapsed.nanoseconds) / 1e9
        guard Double(bytesReceived - mark.bytes) >= max(1, least) else { return true }
        inboundMark = RateMark(time: now, bytes: bytesReceived)
        return false
    }

    private func contentIsLate(_ context: ChannelHandlerContext) {
        guard current?.hasBegun == false else { return timeOut(context) }
        worker.counters.timeouts += 1
        current?.inlet?.fail()
        delivery?.cancel()
        delivery = nil
        refuse(408, "The content of the request did not arrive in time.", context)
        flush(context)
    }

    // MARK: The gateway's end

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

    func reset() {
        guard let context else { return }
        leave()
        context.channel.reset()
    }
}

extension TimeAmount {
    static func rounding(_ seconds: Double) -> TimeAmount { .nanoseconds(Int64(seconds * 1e9)) }
}
