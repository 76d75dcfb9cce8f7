/// Entries to list, to remove or to export, among those that the store sees: see `Configuration.version`.
///
/// Selections combine with `&&`, `||` and `!`:
///
///     try store.remove(.tag("news") && .unusedSince(yesterday))
///     try store.keys((.host("example.com") || .prefix("ftp://old/")) && !.pinned)
///
/// If an index leads to the entries, only those are visited: by key, prefix, host, tag, lifetime and pin, also as a
/// part of `&&`, and in every part of `||`. Everything else visits each entry of the store.
///
/// A walk over `pinned`, or through `||`, keeps the ids of the entries it has visited, some 16 bytes each. An entry
/// that changes during the walk may be left out, if it moves from a part of `||` not yet reached to one already done.
public struct Selection: Sendable, Hashable {
    indirect enum Condition: Sendable, Hashable {
        case all
        case keys(Set<Key>)
        case prefix(Key)
        case host(String)
        case tag(String)
        case policy(StoragePolicy)
        case pinned
        case expired
        case version(String)
        case otherVersions
        case atLeast(ByteCount)
        case storedBefore(Timestamp)
        case unusedSince(Timestamp)
        case content(Digest)
        case incomplete
        case not(Condition)
        case and([Condition])
        case or([Condition])
    }

    let condition: Condition

    private init(_ condition: Condition) { self.condition = condition }

    // MARK: By key

    /// Every entry.
    public static let all = Selection(.all)

    /// The entries with these keys.
    /// - Parameter keys: whole keys.
    public static func keys(_ keys: Set<Key>) -> Selection { Selection(.keys(keys)) }

    /// Keys that start with these bytes.
    /// - Parameter prefix: the first bytes of the keys.
    public static func prefix(_ prefix: Key) -> Selection { Selection(.prefix(prefix)) }

    /// URLs of a host with any scheme and port: keys in which it follows the first `://`, in lower case and without
    /// user information. The caller decides what comes before the scheme: `QUERY https://example.com/` also belongs to
    /// the host. A `://` that ends after byte 478 of a key is not found.
    /// - Parameter host: a name or an address, without a port; case does not matter.
    public static func host(_ host: String) -> Selection { Selection(.host(host.lowercased())) }

    // MARK: By what is known of an entry

    /// Entries put with this tag, byte for byte: other forms of a Unicode string are other tags.
    /// - Parameter tag: 1 to 200 bytes of UTF-8.
    public static func tag(_ tag: String) -> Selection { Selection(.tag(tag)) }

    /// Entries of a storage policy.
    /// - Parameter policy: the one with which the entries were put, or that they were given since.
    public static func policy(_ policy: StoragePolicy) -> Selection { Selection(.policy(policy)) }

    /// Entries that displacement skips: pinned themselves or through a tag. Leases do not count.
    public static let pinned = Selection(.pinned)

    /// Entries that are no longer fresh, pinned ones left out, as in displacement.
    public static let expired = Selection(.expired)

    /// Entries whose body has this many bytes or more; `!` selects the shorter ones.
    /// - Parameter length: of the body, in bytes.
    public static func atLeast(_ length: ByteCount) -> Selection { Selection(.atLeast(length)) }

    /// Entries put at or after a moment.
    /// - Parameter moment: by the store's clock.
    public static func storedSince(_ moment: Timestamp) -> Selection { !.storedBefore(moment) }

    /// Entries put before a moment.
    /// - Parameter moment: by the store's clock.
    public static func storedBefore(_ moment: Timestamp) -> Selection { Selection(.storedBefore(moment)) }

    /// Entries neither put nor hit since a moment; `!` selects those that were.
    /// - Parameter moment: by the store's clock.
    public static func unusedSince(_ moment: Timestamp) -> Selection { Selection(.unusedSince(moment)) }

    /// Entries with this content.
    /// - Parameter digest: SHA-256 of the body.
    public static func content(_ digest: Digest) -> Selection { Selection(.content(digest)) }

    // MARK: By application version

    /// Entries of every application version but the store's own. A store without a version sees the entries of all, and
    /// this selects none.
    public static let otherVersions = Selection(.otherVersions)

    /// Entries of this application version. A selection that contains `version` or `otherVersions` is not limited to
    /// the store's own version.
    /// - Parameter name: as in `Configuration.version`.
    public static func version(_ name: String) -> Selection { Selection(.version(name)) }

    /// Bodies in progress: see ``Store/partialWriter(for:_:total:digest:)``. Listings skip them unless the selection
    /// contains `incomplete`; a removal removes them like other entries.
    public static let incomplete = Selection(.incomplete)

    // MARK: Combined

    /// Entries that both select.
    public static func && (left: Selection, right: Selection) -> Selection {
        Selection(.and(left.condition.conjuncts + right.condition.conjuncts))
    }

    /// Entries that at least one of the two selects.
    public static func || (left: Selection, right: Selection) -> Selection {
        Selection(.or(left.condition.disjuncts + right.condition.disjuncts))
    }

    /// Entries that the store sees and `selection` does not select.
    public static prefix func ! (selection: Selection) -> Selection {
        if case .not(let condition) = selection.condition { return Selection(condition) }
        return Selection(.not(selection.condition))
    }
}

extension Selection.Condition {
    fileprivate var conjuncts: [Self] {
        if case .and(let parts) = self { return parts }
        return [self]
    }

    fileprivate var disjuncts: [Self] {
        if case .or(let parts) = self { return parts }
        return [self]
    }

    /// True if some part is true of it.
    func contains(where isWanted: (Self) -> Bool) -> Bool {
        if isWanted(self) { return true }
        switch self {
        case .not(let part): return part.contains(where: isWanted)
        case .and(let parts), .or(let parts): return parts.contains { $0.contains(where: isWanted) }
        default: return false
        }
    }
}

/// The progress of a removal.
public struct RemovalProgress: Sendable, Hashable {
    /// Entries examined.
    public let examined: Int
    /// Entries removed.
    public let removed: Int
    /// Entries in the store when it began: the most that `examined` can reach, except for entries that a walk visits
    /// twice: through two parts of a selection with `||`, or because they are pinned and used during the walk.
    public let total: Int
}
