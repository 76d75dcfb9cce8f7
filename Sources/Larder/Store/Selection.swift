/// Which entries to list or to remove, of those that the store sees: see `Configuration.version`.
public enum Selection: Sendable, Hashable {
    /// Every entry.
    case all
    /// Keys that start with these bytes. Does not scan the store.
    case prefix(Key)
    /// URLs of a host, with any port: keys that start with a scheme (http, https, ws, wss, ftp, s3, file), `://` and
    /// the host, in lower case. Does not scan the store.
    case host(String)
    /// Entries put with this tag. Does not scan the store.
    case tag(String)
    /// Entries that are no longer fresh, pinned ones left out, as in displacement. Does not scan the store.
    case expired
    /// Entries put at or after a moment.
    case storedSince(Timestamp)
    /// Entries put before a moment.
    case storedBefore(Timestamp)
    /// Entries neither put nor hit since a moment.
    case unusedSince(Timestamp)
    /// Entries of a storage policy.
    case policy(StoragePolicy)
    /// Entries of every application version but the store's own, which every other selection is limited to. A store
    /// without a version sees the entries of all, and this selects none.
    case otherVersions
    /// Every entry but these.
    case allExcept(Set<Key>)

    static let schemes = ["file", "ftp", "http", "https", "s3", "ws", "wss"]

    /// The key ranges a selection covers; nil if it is not by key.
    var prefixes: [[UInt8]]? {
        switch self {
        case .prefix(let key): return [key.bytes]
        case .host(let host): return Self.schemes.map { Array("\($0)://\(host.lowercased())".utf8) }
        default: return nil
        }
    }

    /// Whether an entry in one of the ranges, or anywhere if there are none, is selected.
    /// - Parameter version: the application version whose entries are seen; nil: those of every one.
    func includes(_ key: Key, _ record: EntryRecord, version: UInt16?, now: Timestamp) -> Bool {
        let isForeign = version.map { record.version != $0 } ?? false
        if case .otherVersions = self { return isForeign }
        if isForeign { return false }
        switch self {
        case .all: return true
        case .tag(let tag): return record.tags.contains(tag)
        case .prefix(let prefix): return key.hasPrefix(prefix)
        case .host(let host): return Self.isHost(host.lowercased(), in: key)
        case .expired: return record.isExpired(at: now)
        case .storedSince(let moment): return record.stored >= moment.microseconds
        case .storedBefore(let moment): return record.stored < moment.microseconds
        case .unusedSince(let moment): return record.accessed < moment.microseconds
        case .policy(let policy): return record.policy == policy
        case .otherVersions: return isForeign
        case .allExcept(let kept): return !kept.contains(key)
        }
    }

    /// True if what follows the host in the key ends a host: a port, a path, a query, a fragment or nothing.
    private static func isHost(_ host: String, in key: Key) -> Bool {
        let bytes = key.bytes
        guard let scheme = schemes.first(where: { bytes.starts(with: "\($0)://\(host)".utf8) }) else { return false }
        let end = scheme.utf8.count + 3 + host.utf8.count
        return end == bytes.count
            || [UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains(bytes[end])
    }
}

/// How far a removal has come.
public struct RemovalProgress: Sendable, Hashable {
    /// Entries looked at.
    public let examined: Int
    /// Entries removed.
    public let removed: Int
    /// Entries in the store when it began: the most that `examined` can reach.
    public let total: Int
}
