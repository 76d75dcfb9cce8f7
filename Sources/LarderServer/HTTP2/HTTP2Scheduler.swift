import NIOCore

/// An answer that takes its turns with those of other streams.
protocol HTTP2Sender: AnyObject {
    /// What may be sent now, in bytes.
    var room: Int64 { get }
    /// Whether there is content that could be sent, or read to be sent.
    var hasUnsent: Bool { get }
    /// Sends the next piece, of at most `room` bytes; asks for more where there is none.
    /// - Returns: whether something was written.
    func sendPiece(_ room: Int64) -> Bool
}

/// A request that waits until the connection has memory for its answer.
protocol HTTP2Applicant: AnyObject {
    /// There is memory: the request is answered.
    func admit()
}

/// Decides which streams of a connection may send. They take turns; each sends as much as its window and the
/// connection's allow (RFC 9113 section 5.2), and only while the client takes what was sent before.
///
/// Owns the account of the memory that the connection's answers take up, which decides whether more content may be
/// brought into memory and whether another request is answered. On the event loop only.
final class HTTP2Scheduler {
    /// The gateway ends the connection, not the client.
    var isCutOff = false
    /// What of one stream goes out before it is the next one's turn, in bytes.
    private static let turn: Int64 = 16 << 10
    /// What a stream may send that is alone, in bytes.
    private static let longTurn: Int64 = 64 << 10

    private let worker: Worker
    private let output: HTTP2Output
    /// What answers may take up in memory, in bytes.
    private let limit: Int64
    /// Answers that have begun and not ended, in turn.
    private var senders = CircularBuffer<any HTTP2Sender>()
    /// Requests that wait for memory.
    private var applicants = CircularBuffer<any HTTP2Applicant>()
    private var isSending = false
    private var isOver = false
    /// Something changed while ``send()`` ran.
    private var hasChanged = false
    /// Something waits for memory.
    private var lacksMemory = false
    /// Content that is in memory for the client, from the store or the origin to the kernel, in bytes.
    private(set) var held: Int64 = 0
    /// What open files count as, in bytes.
    private var files: Int64 = 0

    init(_ worker: Worker, _ output: HTTP2Output) {
        self.worker = worker
        self.output = output
        limit = Int64(worker.core.configuration.limits.heldBytes)
    }

    /// The connection ends: nothing is sent, and no request answered, for what its streams let go of.
    func stop() {
        isOver = true
        senders = []
        applicants = []
    }

    // MARK: Memory

    /// Whether more of an answer that has begun may be brought into memory; remembers that something waits if not.
    /// Open files do not count: those that have one would otherwise wait for each other.
    func hasMemory() -> Bool {
        if held < limit { return true }
        lacksMemory = true
        return false
    }

    /// Whether another request may be answered; remembers that something waits if not.
    func hasMemoryForRequests() -> Bool {
        if held + files < limit { return true }
        lacksMemory = true
        return false
    }

    /// More or less is in memory for the client, and open.
    /// - Parameters:
    ///   - bytes: the change of what is in memory.
    ///   - count: the change of what open files count as.
    func hold(_ bytes: Int64, files count: Int64) {
        held += bytes
        files += count
        worker.counters.bytesHeld += bytes
        worker.core.memory.add(Int(bytes))
        guard lacksMemory, bytes < 0 || count < 0 else { return }
        lacksMemory = false
        send()
    }

    /// A request waits for memory.
    func wait(_ applicant: any HTTP2Applicant) { applicants.append(applicant) }

    // MARK: Turns

    /// An answer has begun, and has content.
    func begin(_ sender: any HTTP2Sender) { senders.append(sender) }

    /// Everything of an answer has been handed over, or will never be.
    func end(_ sender: any HTTP2Sender) { senders.removeAll { $0 === sender } }

    /// The stream of a request is over.
    func withdraw(_ applicant: any HTTP2Applicant) { applicants.removeAll { $0 === applicant } }

    /// Whether the connection's window is used up, and an answer has content for it.
    var isOutOfWindow: Bool { output.windows.connection <= 0 && senders.contains { $0.hasUnsent } }

    /// Whether answers wait for their turns.
    var isBusy: Bool { !senders.isEmpty || !applicants.isEmpty }

    /// Sends what can be sent.
    func send() {
        guard !isOver else { return }
        guard !isSending else {
            hasChanged = true
            return
        }
        isSending = true
        repeat {
            hasChanged = false
            if handOver() { hasChanged = true }
            if admit() { hasChanged = true }
            output.flush()
        } while hasChanged && output.isWritable
        isSending = false
    }

    /// Gives each stream its turns, as long as the client takes what is written. Returns whether something was.
    private func handOver() -> Bool {
        var hasWritten = false
        var unable = 0
        while output.isWritable, unable < senders.count {
            let sender = senders.removeFirst()
            senders.append(sender)
            let turn = senders.count == 1 ? Self.longTurn : Self.turn
            if sender.sendPiece(min(sender.room, turn)) {
                unable = 0
                hasWritten = true
            } else {
                unable += 1
            }
        }
        return hasWritten
    }

    /// Answers requests that waited for memory while there is some. Returns whether there was one.
    private func admit() -> Bool {
        var hasAdmitted = false
        while hasMemoryForRequests(), !applicants.isEmpty {
            applicants.removeFirst().admit()
            hasAdmitted = true
        }
        return hasAdmitted
    }
}
