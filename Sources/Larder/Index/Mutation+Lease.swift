import LMDB

extension Mutation {
    /// Makes the lease of a subject that is nobody's last for `duration` at least: one row for each subject.
    func lease(_ kind: Index.LeaseKind, _ subject: [UInt8], version: UInt16?, for duration: Duration) throws {
        let row = Index.leasePrefix(kind, subject, version: version) + bigEndian(UInt64(0))
        let expires = (now + duration).microseconds
        if let old = try reading.get(index.leases, row), old.count == 16, old.field(0, as: Int64.self) >= expires {
            return
        }
        try transaction.put(index.leases, row, Index.lease(until: expires, instance: 0))
        noteChange(trees: 1)
    }

    /// Adds a lease that somebody holds; returns its row. Looks at some leases of others on the way and deletes those
    /// that are over.
    func addLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], version: UInt16?, for duration: Duration, _ engine: Engine
    ) throws -> [UInt8] {
        if let leases = engine.writing?.leases {
            leases.position = try dropStaleLeases(from: leases.position, limit: Self.staleLeaseLimit)
        }
        let row = Index.leasePrefix(kind, subject, version: version) + bigEndian(state.nextID)
        state.nextID &+= 1
        let instance = engine.writing?.lock.instance ?? 0
        try transaction.put(index.leases, row, Index.lease(until: (now + duration).microseconds, instance: instance))
        noteChange(trees: 1)
        return row
    }

    /// Rows that a new lease looks at for leases whose time is over.
    private static let staleLeaseLimit = 16
}
