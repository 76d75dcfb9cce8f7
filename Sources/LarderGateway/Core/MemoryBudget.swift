import Synchronization

/// Memory that waits for clients and origins: content of requests on its way to an origin, and answers that clients have
/// not taken. Safe to use from any thread.
///
/// Holders add what they hold and take it away again. Beyond the limit requests that need an origin are refused, and
/// connections that hold most and take least are closed: see ``Worker/tick()``.
final class MemoryBudget: Sendable {
    /// What a response that is not stored takes up behind a client that does not read, before this gateway's part of it: what
    /// the transport has read ahead, and the window of the load.
    static let readAheadBytes = 256 << 10

    /// In bytes.
    let limit: Int
    private let bytes = Atomic<Int>(0)
    private let refusals = Atomic<Int>(0)

    init(limit: Int) { self.limit = limit }

    /// Bytes that are held.
    var held: Int { bytes.load(ordering: .relaxed) }

    /// Bytes to let go of: 0 up to the limit. Beyond it an eighth of the limit more than is held too much, so that there is
    /// room for others before those who were closed come back.
    var excess: Int {
        let held = held
        return held > limit ? held - (limit - limit / 8) : 0
    }

    /// Requests that were refused.
    var refusedRequests: Int { refusals.load(ordering: .relaxed) }

    /// Counts bytes that are held from now on; fewer than none for those that are let go of.
    func add(_ count: Int) {
        if count != 0 { bytes.add(count, ordering: .relaxed) }
    }

    /// Whether a request may ask for more; counts one that may not.
    func admitsRequest() -> Bool {
        if held < limit { return true }
        refusals.add(1, ordering: .relaxed)
        return false
    }
}
