import Locks

/// Memory that waits for clients and origins: content of requests on its way to an origin, and answers that clients
/// have not taken. Safe to use from any thread.
///
/// Holders add what they hold and take it away again. From seven eighths of the limit on, the connections that hold the
/// most and take the least are closed: see ``Shedding``. At the limit, requests that need an origin are refused.
final class MemoryBudget: Sendable {
    /// About what a load takes up behind a client, before the connection's part of it: its tasks, room to read into,
    /// what the transport has read ahead, and the window of the load, or what the store has in memory, or will get.
    static let loadBytes = 400 << 10
    /// The same for a response that is relayed: without a load's task and window.
    static let relayBytes = 160 << 10

    /// In bytes.
    let limit: Int
    /// Above the first, connections are closed until no more than the second is held: so that what comes meanwhile
    /// still has room, and those that were closed and come back do not find it full at once.
    private let closesFrom: Int
    private let closesTo: Int
    private let bytes = Atomic<Int>(0)
    private let refusals = Atomic<Int>(0)
    /// What loads and the transport hold, which they count themselves.
    private let heldElsewhere: @Sendable () -> Int

    init(limit: Int, heldElsewhere: @escaping @Sendable () -> Int) {
        self.limit = limit
        self.heldElsewhere = heldElsewhere
        closesFrom = limit - limit / 8
        closesTo = limit - limit / 4
    }

    /// Bytes that are held.
    var held: Int { bytes.load(ordering: .relaxed) + heldElsewhere() }

    /// Bytes to let go of by closing connections.
    var excess: Int {
        let held = held
        return held > closesFrom ? held - closesTo : 0
    }

    /// Requests that were refused.
    var refusedRequests: Int { refusals.load(ordering: .relaxed) }

    /// Counts bytes that are held from now on; fewer than none for those that are let go of.
    func add(_ count: Int) {
        if count != 0 { bytes.add(count, ordering: .relaxed) }
    }

    /// Whether a request may ask for more.
    var hasRoom: Bool { held < limit }

    /// The same; counts a request that may not.
    func admitsRequest() -> Bool {
        if hasRoom { return true }
        refusals.add(1, ordering: .relaxed)
        return false
    }
}
