import NIOCore

/// Limits in time. The watch over an answer ends when the kernel has its last byte.
extension HTTP2StreamHandler {
    /// Whether the answer waits for the stream's own window, or the request for memory that the client's other streams
    /// take. A slow connection is not the stream's fault: ``HTTP2Connection/isTooSlow(_:)``.
    private var waitsForWindow: Bool {
        if waitingRequest != nil { return true }
        guard hasBegun, !hasEnded else { return false }
        return hasUnsent && connection.windows.stream(id) - queued <= 0 || (content.isEmpty && !connection.hasMemory)
    }

    /// Whether there is content that could be sent, or read to be sent.
    var hasUnsent: Bool { !content.isEmpty || content.source != nil || left ?? 0 > 0 }

    /// Whether the stream is not held up by its client.
    var isProgressing: Bool { !waitsForWindow || outboundWatch.hasGained(taken) }

    /// Ends what its client holds up for too long. Returns whether the client does not take the answer.
    func tick(_ now: NIODeadline) -> Bool {
        guard !isOver else { return false }
        let limits = worker.core.configuration.limits
        if openHead != nil, let record, now - record.start > TimeAmount(limits.headTimeout) {
            worker.counters.timeouts += 1
            openHead = nil
            refuse(408, "The content of the request did not arrive in time.")
            return false
        }
        if outboundWatch.isTooSlow(waitsForWindow, taken, now, limits) {
            worker.counters.timeouts += 1
            // RFC 9113 section 8.7: a request that was refused so may be sent again, whatever its method.
            fail(waitingRequest != nil ? .refusedStream : .cancel)
            return true
        }
        let awaits = !isRequestComplete && inlet != nil && wantsToRead && !owesContinue
        if inboundWatch.isTooSlow(awaits, received, now, limits) {
            worker.counters.timeouts += 1
            refuse(408, "The content of the request did not arrive in time.")
        }
        return false
    }
}
