extension Store {
    /// Keeps the entry under `key` out of displacement by any process for `duration`, or until the lease is released or
    /// its last reference is dropped. The entry need not exist yet. A store with an application version leases entries
    /// of that version only. A `memoryOnly` entry stays in memory for the same time.
    ///
    /// Waits for the commit that it joins. For many leases, use `WriteBatch`.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - duration: how long the lease holds unless it is released. Default: 60 seconds.
    ///   - durability: the durability of the lease. Nil (the default): as `Configuration.durability` says.
    /// - Returns: the lease, which the caller must keep.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    public func lease(
        _ key: Key, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) throws -> Lease {
        try key.validate()
        return try makeLease(.key, key.bytes, duration, durability)
    }

    /// Keeps the entry under `key` out of displacement by any process for `duration`, or until the lease is released or
    /// its last reference is dropped.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    public func lease(
        _ key: Key, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) async throws -> Lease {
        try Task.checkCancellation()
        try key.validate()
        return try await makeLease(.key, key.bytes, duration, durability)
    }

    /// Keeps every entry with `tag` out of displacement for `duration`, or until the lease is released or its last
    /// reference is dropped. This includes entries put during that time. Versions and `memoryOnly` entries are treated
    /// as by `lease(_:for:durability:)`. Waits for the commit that it joins.
    /// - Parameters:
    ///   - tag: 1 to 200 bytes of UTF-8, no NUL.
    ///   - duration: how long the lease holds unless it is released. Default: 60 seconds.
    ///   - durability: the durability of the lease. Nil (the default): as `Configuration.durability` says.
    /// - Returns: the lease, which the caller must keep.
    /// - Throws: `invalidArgument`, `closed`, `readOnly`, `noSpace`, `io`.
    public func lease(
        tag: String, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) throws -> Lease {
        try PutOptions.validate(callersTag: tag)
        return try makeLease(.tag, Array(tag.utf8), duration, durability)
    }

    /// Keeps every entry with `tag` out of displacement for `duration`, or until the lease is released or its last
    /// reference is dropped.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    public func lease(
        tag: String, for duration: Duration = .seconds(60), durability: Durability? = nil
    ) async throws -> Lease {
        try Task.checkCancellation()
        try PutOptions.validate(callersTag: tag)
        return try await makeLease(.tag, Array(tag.utf8), duration, durability)
    }

    /// As `lease(tag:for:)`, for a reserved tag.
    package func lease(reservedTag tag: String, for duration: Duration) throws -> Lease {
        try PutOptions.validate(tag: tag)
        return try makeLease(.tag, Array(tag.utf8), duration, nil)
    }

    private func makeLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration, _ durability: Durability?
    ) throws -> Lease {
        _ = try writing()
        let job = leaseJob(kind, subject, duration, durability)
        do {
            try engine.run(job)
        } catch {
            release(job)
            throw error
        }
        return Lease(of: self, job)
    }

    private func makeLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration, _ durability: Durability?
    ) async throws -> Lease {
        _ = try writing()
        let job = leaseJob(kind, subject, duration, durability)
        do {
            try await engine.run(job)
        } catch {
            release(job)
            throw error
        }
        return Lease(of: self, job)
    }

    private func leaseJob(
        _ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration, _ durability: Durability?
    ) -> PendingJob {
        let request = Change.LeaseRequest(kind: kind, subject: subject, version: version, duration: duration)
        return PendingJob([.lease(request)], isDurable: isDurable(durability))
    }

    /// Releases a lease that was taken but could not be synced: its caller never gets it.
    private func release(_ job: PendingJob) {
        guard job.isCommitted, case .leased(let row)? = job.outcomes.first else { return }
        engine.writing?.leases.release(row)
    }
}

/// Keeps an entry, or the entries of a tag, out of displacement while it lives. See `Store.lease(_:for:durability:)`.
public final class Lease: @unchecked Sendable {
    // SAFETY: `row` is immutable; `store` is read, and set to nil, only under `lock`.
    private let lock = Monitor()
    private var store: Store?
    private let row: [UInt8]

    /// - Parameter job: the one that took the lease.
    fileprivate init(of store: Store, _ job: PendingJob) {
        guard case .leased(let row)? = job.outcomes.first else { preconditionFailure("the job takes no lease") }
        self.store = store
        self.row = row
    }

    deinit { release() }

    /// Ends the lease. Does not wait for the disk: displacement by this process sees the release immediately, other
    /// processes with the next commit, a second later at most. Idempotent.
    public func release() {
        let held = lock.locked {
            defer { store = nil }
            return store
        }
        held?.engine.writing?.leases.release(row)
    }
}
