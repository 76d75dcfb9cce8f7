import Locks

/// The claim of a key by this process, for work that others need not do at the same time; see `Store.claim(_:)`.
package final class KeyClaim: Sendable {
    private let store: Store
    private let row: EngineMutex<[UInt8]?>

    fileprivate init(_ store: Store, _ row: [UInt8]) {
        self.store = store
        self.row = EngineMutex(row)
    }

    deinit {
        // The next transaction deletes it.
        if let row = row.withLock({ $0 }) { store.engine.writing?.leases.release(row) }
    }

    /// Ends the claim. Calls after the first have no effect.
    package func release() async {
        let row = row.withLock { row in
            defer { row = nil }
            return row
        }
        await store.release(row)
    }
}

extension Store {
    /// True if another process has the store open for writing. A process that died counts until its files are swept.
    package var isShared: Bool { engine.writing?.partials.isShared ?? false }

    /// Claims a key; nil if another process has claimed it. A claim does not concern the entry under the key, and ends
    /// with its process. This process may hold several claims of one key.
    package func claim(_ key: Key) async throws -> KeyClaim? {
        try await claim(key, version)
    }

    /// As above, for processes that have the store open with any application version, or with none. It needs no room:
    /// what is claimed may be a removal.
    package func claimForAllVersions(_ key: Key) async throws -> KeyClaim? {
        try await claim(key, nil, isHousekeeping: true)
    }

    private func claim(_ key: Key, _ version: UInt16?, isHousekeeping: Bool = false) async throws -> KeyClaim? {
        let job = PendingJob(
            [computation(of: key, version: version)], isDurable: false, isHousekeeping: isHousekeeping)
        try await engine.run(job)
        guard case .leased(let row)? = job.outcomes.first else { return nil }
        return KeyClaim(self, row)
    }

    /// As `isClaimedElsewhere`; it may wait for the disk.
    func isClaimed(_ key: Key) throws -> Bool {
        try engine.writing?.leases.isClaimedElsewhere(key, version) ?? false
    }

    /// True if a living process other than this one has claimed a key.
    package func isClaimedElsewhere(_ key: Key) async throws -> Bool {
        try await performShort { [self] in try isClaimed(key) }
    }
}
