import NIOCore

/// Who may send. Streams take turns; each sends as much as its window and the connection's allow (RFC 9113 section
/// 5.2), and only while the client takes what was sent before.
extension HTTP2Connection {
    /// What of one stream goes out before it is the next one's turn, in bytes.
    private static let turn: Int64 = 16 << 10
    /// What a stream may send that is alone.
    private static let longTurn: Int64 = 64 << 10
    /// What swift-nio-http2 may have at once, in bytes.
    private static let queueLimit: Int64 = 64 << 10

    /// What a stream may send now, in bytes.
    func room(_ stream: HTTP2StreamHandler) -> Int64 {
        max(0, min(windows.stream(stream.id) - stream.queued, windows.connection - queued))
    }

    private var limit: Int64 { Int64(worker.core.configuration.limits.heldBytes) }

    /// Whether more of an answer that has begun may be brought into memory. Open files do not count: those that have
    /// one would otherwise wait for each other.
    var hasMemory: Bool {
        if held < limit { return true }
        lacksMemory = true
        return false
    }

    /// Whether another request may be answered.
    var hasMemoryForRequests: Bool {
        if held + files < limit { return true }
        lacksMemory = true
        return false
    }

    /// The answer of a stream has begun.
    func sends(_ stream: HTTP2StreamHandler) { sending.append(stream) }

    /// Everything of a stream has been handed over.
    func hasSent(_ stream: HTTP2StreamHandler) { sending.removeAll { $0 === stream } }

    /// Sends what can be sent.
    func send() {
        guard !isSending else {
            hasChanged = true
            return
        }
        isSending = true
        defer { isSending = false }
        var isProgressing = true
        while isProgressing {
            hasChanged = false
            let touched = handOver()
            for stream in touched { stream.flush() }
            isProgressing = (admit() || hasChanged || !touched.isEmpty) && mayHandOver
        }
    }

    private var mayHandOver: Bool { channel.isWritable && queued < Self.queueLimit }

    /// Gives each stream its turns until there is enough for a write. Returns the streams that have something to flush.
    private func handOver() -> [HTTP2StreamHandler] {
        var touched: [HTTP2StreamHandler] = []
        var unable = 0
        while mayHandOver, unable < sending.count {
            let stream = sending.removeFirst()
            sending.append(stream)
            let turn = sending.count == 1 ? Self.longTurn : Self.turn
            if stream.sendPiece(min(room(stream), turn)) {
                unable = 0
                touched.append(stream)
            } else {
                unable += 1
            }
        }
        return touched
    }

    /// Requests that waited for memory are answered when there is some. Returns whether there was one.
    private func admit() -> Bool {
        var hasAdmitted = false
        while hasMemoryForRequests, !waiting.isEmpty {
            waiting.removeFirst().admit()
            hasAdmitted = true
        }
        return hasAdmitted
    }

    // MARK: Limits in time

    /// Whether something is there for the client that it does not take, for another reason than a stream's own window.
    private var isBlocked: Bool {
        if handedOver > taken || SendQueue.pending(channel) > 0 { return true }
        return windows.connection - queued <= 0 && sending.contains { $0.hasUnsent }
    }

    /// Whether the client takes what is sent too slowly.
    /// - Parameter countsSystem: whether bytes count that only the system still holds.
    private func isTooSlow(_ now: NIODeadline, countsSystem: Bool) -> Bool {
        let unacknowledged = SendQueue.unacknowledged(channel)
        guard isBlocked || (countsSystem && unacknowledged > 0) else {
            outboundWatch.reset()
            return false
        }
        return outboundWatch.isTooSlow(
            acknowledged: taken - Int64(unacknowledged), now, worker.core.configuration.limits)
    }
}

extension HTTP2Connection: SupervisedConnection {
    func tick(_ now: NIODeadline) {
        let limits = worker.core.configuration.limits
        lastProgress = taken - takenAtLastLook
        takenAtLastLook = taken
        let isIdle = streams.isEmpty && handedOver == taken && now - since > TimeAmount(limits.idleTimeout)
        if isTooSlow(now, countsSystem: isIdle) {
            worker.counters.timeouts += 1
            return abort()
        }
        let isProgressing = streams.values.contains(where: \.isProgressing)
        var isStalled = false
        for stream in streams.values where stream.tick(now) { isStalled = true }
        if isStalled, !isProgressing {
            // Not one of its streams gets on: what it asks for next would not either.
            drain()
        } else if isIdle, !outboundWatch.isWaiting {
            drain()
        }
    }
}
