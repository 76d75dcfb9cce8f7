/// Where the entries that a selection may select are found: a part of an index.
enum EntrySource {
    /// These keys.
    case keys([[UInt8]])
    /// A range of `entries` by prefix.
    case range(prefix: [UInt8])
    /// The part of `entries` that has a host, whatever the scheme.
    case host([UInt8])
    /// Rows of `tags`.
    case tag(prefix: [UInt8])
    /// Rows of `pinned`.
    case pinned
    /// Rows of `expiry` up to now.
    case expired
    /// Every entry.
    case all

    /// The narrowest part of an index that has all entries of which a condition can be true.
    /// - Parameter isOrdered: whether keys with one beginning lie together.
    init(_ condition: Selection.Condition, isOrdered: Bool) {
        switch condition {
        case .keys(let keys):
            self = .keys(keys.map { IndexKey.bytes(for: $0) }.sorted { $0.lexicographicallyPrecedes($1) })
        case .prefix(let key) where isOrdered && !key.bytes.isEmpty:
            self = .range(prefix: Array(key.bytes.prefix(IndexKey.prefixLength)))
        case .host(let host) where isOrdered: self = .host(Array(host.utf8))
        case .tag(let tag): self = .tag(prefix: Index.tagPrefix(tag))
        case .pinned: self = .pinned
        case .expired: self = .expired
        case .and(let parts):
            self = parts.map { EntrySource($0, isOrdered: isOrdered) }.min { $0.width < $1.width } ?? .all
        default: self = .all
        }
    }

    /// The sources of a condition, one for each part of an `or` if all of them have one.
    static func sources(
        of condition: Selection.Condition, isOrdered: Bool
    ) -> [(source: EntrySource, part: Selection.Condition)] {
        if case .or(let parts) = condition {
            let sources = parts.map { (source: EntrySource($0, isOrdered: isOrdered), part: $0) }
            if !sources.contains(where: { $0.source.width == EntrySource.all.width }) { return sources }
        }
        return [(EntrySource(condition, isOrdered: isOrdered), condition)]
    }

    /// True if a walk over it may come to an entry twice.
    var mayRepeat: Bool { if case .pinned = self { true } else { false } }

    /// Smaller for what is likely to have fewer entries.
    private var width: Int {
        switch self {
        case .keys: 0
        case .tag: 1
        case .pinned: 2
        case .expired: 3
        case .host: 4
        // The longer, the narrower.
        case .range(let prefix): 1000 - prefix.count
        case .all: 10_000
        }
    }
}
