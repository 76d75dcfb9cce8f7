/// A selection with what it is judged by: whose entries are seen, and what time it is.
struct EntryFilter: Sendable {
    let condition: Selection.Condition
    /// The application version whose entries are seen; nil: those of every one.
    let version: UInt16?
    /// The numbers of the versions that the selection names.
    let versions: [String: UInt16]
    let now: Timestamp
    /// The selection says itself which versions it means.
    private let namesVersions: Bool
    private let namesContent: Bool
    /// The selection says itself whether it means bodies in progress, which a listing passes by otherwise.
    let namesIncomplete: Bool

    init(_ selection: Selection, version: UInt16?, versions: [String: UInt16] = [:], now: Timestamp) {
        condition = selection.condition
        self.version = version
        self.versions = versions
        self.now = now
        namesVersions = Self.namesVersions(selection)
        namesContent = selection.condition.contains { if case .content = $0 { true } else { false } }
        namesIncomplete = selection.condition.contains { if case .incomplete = $0 { true } else { false } }
    }

    static func namesVersions(_ selection: Selection) -> Bool {
        selection.condition.contains { part in
            switch part {
            case .version, .otherVersions: true
            default: false
            }
        }
    }

    /// Whether an entry is selected.
    /// - Parameters:
    ///   - digest: of its body; asked for only if the selection looks at content.
    ///   - part: the part of the selection that has to be true of it. Nil: the whole.
    func includes(
        _ key: Key, _ record: EntryRecord, digest: () throws -> Digest?, part: Selection.Condition? = nil
    ) rethrows -> Bool {
        if !namesVersions, isForeign(record) { return false }
        return try matches(part ?? condition, key, record, namesContent ? digest() : nil)
    }

    /// Whether a part of the selection is true of an entry.
    func matches(_ condition: Selection.Condition, _ key: Key, _ record: EntryRecord, _ digest: Digest?) -> Bool {
        switch condition {
        case .all: true
        case .keys(let keys): keys.contains(key)
        case .prefix(let prefix): key.hasPrefix(prefix)
        case .host(let host): HostGroup.host(host, isIn: key.bytes)
        case .tag(let tag): record.tags.has(tag)
        case .policy(let policy): record.policy == policy
        case .pinned: record.isKept
        case .expired: record.isExpired(at: now) && !record.isKept
        case .version(let name): versions[name] == record.version
        case .otherVersions: isForeign(record)
        case .atLeast(let length): record.length >= UInt64(clamping: length.bytes)
        case .storedBefore(let moment): record.stored < moment.microseconds
        case .unusedSince(let moment): record.accessed < moment.microseconds
        case .content(let wanted): digest == wanted
        case .incomplete: record.progress != nil
        case .not(let part): !matches(part, key, record, digest)
        case .and(let parts): parts.allSatisfy { matches($0, key, record, digest) }
        case .or(let parts): parts.contains { matches($0, key, record, digest) }
        }
    }

    private func isForeign(_ record: EntryRecord) -> Bool { version.map { record.version != $0 } ?? false }
}

extension [String] {
    /// True if one of these tags has the bytes of `tag`, by which the index has it. Strings are equal for less: `==`
    /// compares their characters.
    func has(_ tag: String) -> Bool { contains { $0.utf8.elementsEqual(tag.utf8) } }
}

/// URLs in the order of their bytes are grouped by what stands before the host: `https://`, `QUERY http://`.
enum HostGroup {
    private static let separator = Array("://".utf8)

    /// The part of a key before the host, `://` included; nil if the key is not a URL.
    static func beginning(of key: some RandomAccessCollection<UInt8>) -> [UInt8]? {
        let bytes = key.prefix(IndexKey.prefixLength)
        guard let colon = bytes.indices.first(where: { bytes[$0...].starts(with: separator) }) else { return nil }
        return Array(bytes[...colon]) + separator.dropFirst()
    }

    /// True if the first `://` of a key is followed by the host and what ends a host: a port, a path, a query, a
    /// fragment or nothing.
    static func host(_ host: String, isIn key: [UInt8]) -> Bool {
        guard let beginning = beginning(of: key) else { return false }
        let rest = key[beginning.count...]
        guard rest.starts(with: host.utf8) else { return false }
        guard let end = rest.dropFirst(host.utf8.count).first else { return true }
        return end == UInt8(ascii: ":") || end == UInt8(ascii: "/") || end == UInt8(ascii: "?")
            || end == UInt8(ascii: "#")
    }
}
