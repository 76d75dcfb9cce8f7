import HTTPCaching
import Larder
import Locks

/// The table of packages as a cache knows it: parsed when it has changed.
final class StoredPackages: Sendable {
    /// The key of the table.
    let key: Key
    private let known = Mutex<(digest: Digest?, table: PackageTable)>((nil, PackageTable()))
    /// True if stored responses give way to members, as far as is known: then even a fresh one is not enough to know.
    let isSuperseding = Atomic<Bool>(false)
    /// True if there are packages, as far as is known; also before the first look.
    let arePresent = Atomic<Bool>(true)

    init(_ store: Store) { key = PackageKeys.table(store.applicationVersion) }

    /// The table of an entry that was looked up under ``key``.
    func table(_ entry: Entry?) throws -> PackageTable {
        let digest = entry?.digest
        if let table = known.withLock({ $0.digest == digest ? $0.table : nil }) {
            if digest == nil { arePresent.store(false, ordering: .relaxed) }
            return table
        }
        let table = try entry.map { PackageTable(try $0.body.bytes()) } ?? PackageTable()
        known.withLock { $0 = (digest, table) }
        arePresent.store(!table.rows.isEmpty, ordering: .relaxed)
        isSuperseding.store(table.rows.contains { $0.supersedes != nil }, ordering: .relaxed)
        return table
    }
}

/// Members of packages, as stored responses.
extension ResponseStore {
    /// True if what other queries share may be better than what was found under a URL itself: nothing, or members of
    /// packages that are stale.
    func mayBeShared(_ found: [Found]) -> Bool {
        // Members are the last that a search finds.
        if found.isEmpty || found[0].package == nil { return found.isEmpty }
        let moment = now()
        return !found.contains { $0.response.policy.isFresh(at: moment) }
    }

    /// The origin has something else than a member, which is stale from then on. It stays: without a connection it may
    /// be all there is. False if it was changed or removed meanwhile.
    @discardableResult
    func supersede(_ member: Entry, at now: Instant) throws -> Bool {
        guard var response = StoredRecord(member.metadata)?.response, !response.policy.isSuperseded else { return true }
        response.policy.supersede(at: now)
        response.responseTime = now
        return try update(member, to: response)
    }

    /// The origin has something else than what packages have for a URL. May wait.
    func supersedeMembers(_ url: String, at now: Instant) throws {
        for (_, key) in try PackageTable(in: store).members(url) {
            if let member = try store.peek(key) { try supersede(member, at: now) }
        }
    }

    /// As above, where there are packages as far as is known. Also members that were not looked at are meant, because
    /// something fresh was there, or not chosen.
    func supersedeMembersIfPresent(_ url: String) async throws {
        guard packages.arePresent.load(ordering: .relaxed) else { return }
        try await store.performShort { [self] in try supersedeMembers(url, at: now()) }
    }

    /// Keeps what the origin has said of a member. How long it stays is for its package to say.
    func update(_ member: Entry, to response: StoredResponse) throws -> Bool {
        var batch = WriteBatch()
        batch.update(member, EntryChange(metadata: StoredRecord.revised(response)).withReservedNames)
        return try store.write(batch)[0].isSuccess
    }

    /// Removes the members for a URL from all packages; returns how many. May wait.
    func removeMembers(_ url: String) throws -> Int {
        var count = 0
        for (_, key) in try PackageTable(in: store).members(url) where try store.remove(key) { count += 1 }
        return count
    }
}
