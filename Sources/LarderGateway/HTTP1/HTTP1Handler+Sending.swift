import LarderHTTP
import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// An answer that was handed to the channel and that the system has not taken yet.
struct UnsentAnswer {
    var record: RequestRecord
    /// Where it ends, in ``HTTP1Handler/bytesQueued``.
    let end: Int64
}

/// What became of the bytes that were handed to the channel.
extension HTTP1Handler {
    /// Content that is counted and logged when it is handed to the channel: in one write with its head it goes out at once, or
    /// the client has not read what came before.
    static let loggedAtOnce: Int64 = 64 << 10

    /// Counts and logs an answer: a small one now, a large one when its last byte has gone out.
    func answered(_ record: RequestRecord) {
        guard record.bytesSent > Self.loggedAtOnce, let context else { return worker.finished(record) }
        if worker.output.readableBytes > 0 { append(to: context, isTracked: true) }
        guard bytesTaken < bytesQueued else { return worker.finished(record) }
        unsent.append(UnsentAnswer(record: record, end: bytesQueued))
    }

    /// Hears when everything that was handed to the channel so far has gone out.
    func track(_ write: EventLoopFuture<Void>) {
        let end = bytesQueued
        write.assumeIsolated().whenSuccess { self.took(upTo: end) }
    }

    private func took(upTo end: Int64) {
        bytesTaken = max(bytesTaken, end)
        while let first = unsent.first, first.end <= end {
            unsent.removeFirst()
            worker.finished(first.record)
        }
    }

    /// Bytes that the channel holds because the system takes no more, those of files included.
    func pendingBytes(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Sees how far the client has come, while that can be seen.
    func noteTaken(_ context: ChannelHandlerContext) {
        // A channel that is closed holds nothing, whatever became of it.
        guard context.channel.isActive else { return }
        let taken = bytesQueued - Int64(pendingBytes(context))
        bytesTaken = max(bytesTaken, taken)
        bytesAcknowledged = max(bytesAcknowledged, taken - Int64(SendQueue.unacknowledged(context.channel)))
    }

    /// Counts and logs what the end of the connection cuts off, with the bytes that reached the client's system.
    func logUnsent() {
        let answers = unsent
        unsent = []
        for answer in answers {
            worker.counters.clientAborts += 1
            logCut(answer.record, end: answer.end)
        }
    }

    /// - Parameter end: where the answer, or what there is of it, ends.
    func logCut(_ record: RequestRecord, end: Int64) {
        var record = record
        record.bytesSent = max(0, record.bytesSent - max(0, end - bytesAcknowledged))
        record.isIncomplete = true
        worker.finished(record)
    }

    // MARK: Memory

    /// Brings the memory budget up to date.
    func countMemory(_ context: ChannelHandlerContext) {
        // Behind a file, or a body that is shared, next to nothing waits: the channel has taken no more since.
        let pending = bulkWrites > 0 ? 0 : pendingBytes(context)
        setHeld(pending + input.readableBytes + rest.count)
    }

    func setHeld(_ count: Int) {
        worker.core.memory.add(count - heldBytes)
        heldBytes = count
    }
}

/// The send queue of a socket.
enum SendQueue {
    /// Bytes that were written and not acknowledged; 0 where that cannot be told.
    ///
    /// Linux: tcp(7), `SIOCOUTQ`. macOS: `SO_NWRITE`.
    static func unacknowledged(_ channel: any Channel) -> Int {
        let count = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            var count: CInt = 0
            #if canImport(Darwin)
                var length = socklen_t(MemoryLayout<CInt>.size)
                return getsockopt(socket, SOL_SOCKET, SO_NWRITE, &count, &length) == 0 ? Int(count) : 0
            #else
                return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
            #endif
        }
        return max(0, count ?? 0)
    }
}
