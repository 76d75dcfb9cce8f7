import HTTPCaching
import Larder
import LarderHTTP

/// Removes what no reader finds any more: generations that no package names, because a process was killed or because
/// a newer one has taken their place, and responses that give way to members. Each step can be repeated.
struct PackageRemains {
    let store: Store
    let rules: CacheRules

    /// True if there is anything to remove. A few lookups for each package.
    func isWaiting() throws -> Bool {
        try PackageRecords(store).all().contains { $0.state != .installed || $0.supersedes != nil }
            || !unnamed().isEmpty || FormerPackages(store).arePresent()
    }

    /// The generations that no package names. Those of other application versions are theirs to remove. None if the
    /// table cannot be read.
    private func unnamed() throws -> [String] {
        let named = Set(try PackageTable(in: store).rows.map(\.generation))
        var found: [String] = []
        try store.forEach(.prefix(Key(PackageKeys.rowPrefix))) { row in
            if row.version == store.applicationVersion { found.append(Self.generation(row.key)) }
        }
        found.removeAll { named.contains($0) }
        return try found.isEmpty || !PackageRecords(store).areReadable() ? [] : found
    }

    /// Removes all of it, but for packages whose removal was begun.
    func remove() throws {
        for generation in try unnamed() { try remove(generation) }
        for package in try PackageRecords(store).all() {
            if package.state == .displaced { try removeMembers(package.id) }
            if package.supersedes != nil { try supersede(package) }
        }
    }

    /// Removes a generation that no package names.
    func remove(_ generation: String) throws {
        try store.remove(PackageKeys.owner(generation))
        let all = Selection.prefix(Key(PackageKeys.prefix(generation)))
        if try store.hasCommitted(all) { try store.remove(all) }
        try unpin(generation)
        try store.remove(PackageKeys.row(generation))
    }

    /// Of a package that was displaced as a whole the list stays: by it the package can be verified.
    private func removeMembers(_ generation: String) throws {
        let members = Selection.prefix(PackageKeys.member(generation))
        if try store.hasCommitted(members) { try store.remove(members) }
        try unpin(generation)
    }

    private func unpin(_ generation: String) throws {
        let tag = PackageKeys.tag(generation)
        if try store.pinnedTags().contains(tag) { try store.unpin(reservedTag: tag) }
    }

    /// Removes the responses that members have replaced since the commit.
    private func supersede(_ package: InstalledPackage) throws {
        guard let moment = package.supersedes.map({ Instant(milliseconds: $0) }) else { return }
        let stored = StoredURLs(store, rules)
        var keys: [Key] = []
        _ = try InstalledList(store, package).forEach { line in
            guard let key = line.url.flatMap({ PackagedResponse.key(of: $0, rules: rules) }) else { return }
            keys.append(key)
            if keys.count == 256 {
                try stored.remove(keys, before: moment)
                keys = []
            }
        }
        try stored.remove(keys, before: moment)
        var settled = package
        settled.supersedes = nil
        try PackageRecords(store).write(settled)
    }

    private static func generation(_ row: Key) -> String {
        String(decoding: row.bytes[PackageKeys.rowPrefix.utf8.count...], as: UTF8.self)
    }
}
