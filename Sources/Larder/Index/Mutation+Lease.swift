import LMDB

extension Mutation {
    /// Makes the lease of a subject that ends with its time last for `duration` at least: one row for each subject.
    func lease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], version: UInt16?, for duration: Duration, _ engine: Engine
    ) throws {
        if duration <= .zero { return }
        let row = Index.leasePrefix(kind, subject, version: version) + bigEndian(UInt64(0))
        let expires = (now + duration).microseconds
        if let old = try reading.get(index.leases, row), old.count == 16 {
            if old.field(0, as: Int64.self) >= expires { return }
        } else {
            try tidyLeases(engine)
        }
        try transaction.put(index.leases, row, Index.lease(until: expires, instance: 0))
        noteChange(trees: 1)
    }

    /// Adds a lease that a caller holds; returns its row.
    func addLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], version: UInt16?, for duration: Duration, _ engine: Engine
    ) throws -> [UInt8] {
        try tidyLeases(engine)
        let row = Index.leasePrefix(kind, subject, version: version) + bigEndian(state.nextID)
        state.nextID &+= 1
        let instance = engine.writing?.lock.instance ?? 0
        try transaction.put(index.leases, row, Index.lease(until: (now + duration).microseconds, instance: instance))
        noteChange(trees: 1)
        return row
    }

    /// Deletes some leases that are over, from where the last one that did so has come to. Every new row pays for it,
    /// so the table holds few that are over.
    private func tidyLeases(_ engine: Engine) throws {
        guard let leases = engine.writing?.leases else { return }
        leases.position = try dropStaleLeases(from: leases.position, limit: 16)
    }
}
