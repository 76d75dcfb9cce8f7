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
    /// True if there are packages, as far as is known.
    let arePresent = Atomic<Bool>(false)

    init(_ store: Store) { key = PackageKeys.table(store.applicationVersion) }

    /// The table of an entry that was looked up under ``key``.
    func table(_ entry: Entry?) throws -> PackageTable {
        let digest = entry?.digest
        if let table = known.withLock({ $0.digest == digest ? $0.table : nil }) { return table }
        let table = try entry.map { PackageTable(try $0.body.bytes()) } ?? PackageTable()
        known.withLock { $0 = (digest, table) }
        arePresent.store(!table.rows.isEmpty, ordering: .relaxed)
        isSuperseding.store(table.rows.contains { $0.supersedes != nil }, ordering: .relaxed)
        return table
    }
}

/// Members of packages, as stored responses.
extension ResponseStore {
    /// A member of which the origin has another state is stale from then on. It stays: without a connection it may be
    /// all there is.
    func expire(_ found: Found, at now: Instant) async throws -> Bool {
        var response = found.response
        response.policy.lifetimeMilliseconds = min(
            response.policy.lifetimeMilliseconds, response.policy.ageMilliseconds(at: now))
        return try await updateMember(found.entry, StoredRecord(response).encoded)
    }

    func updateMember(_ entry: Entry, _ metadata: [UInt8]) async throws -> Bool {
        var batch = WriteBatch()
        batch.update(entry, EntryChange(metadata: metadata).withReservedNames)
        return try await store.write(batch)[0].isSuccess
    }

    /// Removes the members for a URL from all packages; returns how many. May wait.
    func removeMembers(_ url: String) throws -> Int {
        var count = 0
        for (_, key) in try PackageTable(in: store).members(url) where try store.remove(key) { count += 1 }
        return count
    }
}
