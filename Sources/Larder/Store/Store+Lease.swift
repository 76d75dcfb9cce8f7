import LMDB

extension Store {
    /// Keeps the entry under `key` out of displacement by any process for `duration`, or until the lease is released or
    /// goes. The entry need not exist yet. A store with an application version leases entries of that version only. A
    /// `memoryOnly` entry stays in memory for as long.
    ///
    /// - Parameters:
    ///   - duration: how long the lease holds unless it is released. Default: 60 seconds.
    ///   - durability: whether the lease has to survive power loss. Nil (the default): as `Configuration.durability` says.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    public func lease(
        _ key: Key, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) throws -> Lease {
        try key.validate()
        return try makeLease(.key, key.bytes, duration, durability)
    }

    /// Keeps every entry with `tag` out of displacement for `duration`, or until the lease is released or goes. Parameters,
    /// versions and errors are those of `lease(_:for:durability:)`.
    public func lease(
        tag: String, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) throws -> Lease {
        try PutOptions.validate(tag: tag)
        return try makeLease(.tag, Array(tag.utf8), duration, durability)
    }

    /// Rows that a new lease looks at for leases whose time is over.
    private static let staleLimit = 16

    private func makeLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration, _ durability: Durability?
    ) throws -> Lease {
        let writing = try writing()
        let engine = engine
        let prefix = Index.leasePrefix(kind, subject, version: version)
        let start = writing.leases.position
        let (row, next) = try engine.mutate(.put) { mutation in
            let next = try mutation.dropStaleLeases(from: start, limit: Self.staleLimit)
            let row = prefix + bigEndian(mutation.state.nextID)
            mutation.state.nextID &+= 1
            let expires = (mutation.now + duration).microseconds
            let value =
                withUnsafeBytes(of: expires.littleEndian) { Array($0) }
                + withUnsafeBytes(of: writing.lock.instance.littleEndian) { Array($0) }
            try mutation.transaction.put(engine.index.leases, row, value)
            mutation.noteChange(trees: 1)
            return (row, next)
        }
        writing.leases.position = next
        try settle(durability)
        return Lease(store: self, row: row)
    }
}

/// Keeps an entry, or the entries of a tag, out of displacement while it lives. See `Store.lease(_:for:durability:)`.
public final class Lease: @unchecked Sendable {
    // SAFETY: `row` is immutable; `store` is set to nil under `lock`.
    private let lock = Monitor()
    private var store: Store?
    private let row: [UInt8]

    init(store: Store, row: [UInt8]) {
        self.store = store
        self.row = row
    }

    deinit { release() }

    /// Ends the lease. Does not wait for the disk: displacement by this process sees it at once, other processes with the
    /// next commit, a second later at most. Idempotent.
    public func release() {
        let held = lock.locked {
            defer { store = nil }
            return store
        }
        held?.engine.writing?.leases.release(row)
    }
}
