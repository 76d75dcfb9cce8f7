/// How far the bytes that were handed on have come, and which answers they belong to.
///
/// An answer is logged when its last byte has gone out, so that the log says what the client got.
struct SendAccount {
    private struct UnsentAnswer {
        var record: RequestRecord
        /// Where it ends, in ``queued``.
        let end: Int64
    }

    /// Content of this many bytes or fewer is logged when it is handed on: in one write with its head it
    /// goes out at once, or the client has not read what came before.
    private static let loggedAtOnce: Int64 = 64 << 10

    /// Bytes handed to the system or the channel.
    private(set) var queued: Int64 = 0
    /// Of ``queued``, the bytes that the system has taken.
    private var taken: Int64 = 0
    /// Of ``taken``, the bytes that the client's system has acknowledged.
    private var acknowledged: Int64 = 0
    /// Answers that the system has not taken yet, in order.
    private var unsent: [UnsentAnswer] = []

    /// Whether an answer has not been taken yet.
    var hasUnsent: Bool { !unsent.isEmpty }

    /// The first answer that has not been taken yet.
    var firstUnsent: RequestRecord? { unsent.first?.record }

    /// Whether an answer is logged when it goes out, not at once.
    static func isLoggedLater(_ record: RequestRecord) -> Bool { record.bytesSent > loggedAtOnce }

    /// Counts bytes that are handed on.
    mutating func queue(_ count: Int) { queued += Int64(count) }

    /// Keeps a complete answer until the system has taken it.
    /// - Returns: false if it has been taken already: then it is logged now.
    mutating func keep(_ record: RequestRecord) -> Bool {
        guard taken < queued else { return false }
        unsent.append(UnsentAnswer(record: record, end: queued))
        return true
    }

    /// The system has taken everything up to `end`.
    mutating func took(upTo end: Int64) { taken = max(taken, end) }

    /// Removes the first answer that ends at `end` or before.
    mutating func nextSent(upTo end: Int64) -> RequestRecord? {
        guard let first = unsent.first, first.end <= end else { return nil }
        return unsent.removeFirst().record
    }

    /// Notes what the channel and the system still hold, in bytes.
    mutating func note(pending: Int, unacknowledged: () -> Int) {
        let taken = queued - Int64(pending)
        self.taken = max(self.taken, taken)
        acknowledged = max(acknowledged, taken - Int64(unacknowledged()))
    }

    /// Removes all answers that the end of the connection cuts off, each with the bytes that reached the client's
    /// system.
    mutating func removeCut() -> [RequestRecord] {
        defer { unsent = [] }
        return unsent.map { cut($0.record, end: $0.end) }
    }

    /// The record of an answer that is cut off where the connection ends.
    func cut(_ record: RequestRecord) -> RequestRecord { cut(record, end: queued) }

    private func cut(_ record: RequestRecord, end: Int64) -> RequestRecord {
        var record = record
        record.bytesSent = max(0, record.bytesSent - max(0, end - acknowledged))
        record.isIncomplete = true
        return record
    }
}
