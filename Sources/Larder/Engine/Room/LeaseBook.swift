import LMDB
import Synchronization

/// The leases of an engine that are over and still have their rows, and how far the search for others' has come.
final class LeaseBook: Sendable {
    private struct State {
        var released: [[UInt8]] = []
        var position: [UInt8] = []
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    /// True if there are rows to delete.
    var isDirty: Bool { count.load(ordering: .acquiring) > 0 }

    /// A lease is over: the next transaction deletes its row.
    func release(_ row: [UInt8]) {
        state.withLock { state in
            state.released.append(row)
            count.store(state.released.count, ordering: .releasing)
        }
    }

    /// The rows to delete.
    var released: [[UInt8]] { isDirty ? state.withLock { $0.released } : [] }

    /// These rows were deleted, and that is committed.
    func forget(_ rows: [[UInt8]]) {
        if rows.isEmpty { return }
        state.withLock { state in
            let gone = Set(rows)
            state.released.removeAll { gone.contains($0) }
            count.store(state.released.count, ordering: .releasing)
        }
    }

    /// Where the search for leases whose time is over continues.
    var position: [UInt8] {
        get { state.withLock { $0.position } }
        set { state.withLock { $0.position = newValue } }
    }
}

extension Engine {
    /// Deletes the rows of leases that were released, unless another transaction does so first. For the committer's
    /// loop.
    func dropReleasedLeases() {
        guard let writing, writing.leases.isDirty else { return }
        do {
            try mutate(.housekeeping) { _ in }
            succeeded(.leases)
        } catch {
            // They end with their time, and the next transaction tries again.
            failed(.leases, error)
        }
    }
}

extension Mutation {
    /// Deletes the rows of leases that are over.
    func dropLeases(_ rows: [[UInt8]]) throws {
        for row in rows where try transaction.delete(index.leases, row) { noteChange(trees: 1) }
    }

    /// Deletes leases whose time is over, of at most `limit` rows from `start` on; returns where to continue. A new
    /// lease adds a row and looks at some: so the table holds few that are over, and a lease costs the same however
    /// many there are.
    func dropStaleLeases(from start: [UInt8], limit: Int) throws -> [UInt8] {
        var stale: [[UInt8]] = []
        var next: [UInt8] = []
        try reading.withCursor(index.leases) { cursor in
            var pair = try cursor.seek(start)
            var examined = 0
            while let (row, value) = pair {
                if examined == limit {
                    next = Array(row)
                    return
                }
                examined += 1
                if value.count != 16 || value.field(0, as: Int64.self) <= now.microseconds { stale.append(Array(row)) }
                pair = try cursor.next()
            }
        }
        try dropLeases(stale)
        return next
    }
}
