import HTTPCaching
import HTTPTypes
import Larder

/// The tags under which responses are purged: their groups (RFC 9875), what their tag fields name, and the caller's.
///
/// A response is stored with all of its tags, or not at all: one that its origin cannot purge would stay.
struct ResponseTags: Sendable {
    /// The fields whose values are tags, separated by commas and blanks.
    let fields: [HTTPField.Name]

    /// All tags of a response; nil if an entry cannot hold them.
    /// - Parameters:
    ///   - primary: its primary key.
    ///   - own: what the caller gives it.
    func all(of head: HTTPResponse, groups: [String], primary: String, own: [String]) -> [String]? {
        Self.union(own.filter { !$0.isEmpty }.map { Self.held($0) }, named(by: head, groups: groups, primary: primary))
    }

    /// The tags of an entry whose response was updated; nil if an entry cannot hold them. What the response said of
    /// itself is replaced by what it says now; what else the entry has stays.
    func updated(
        _ tags: [String], from old: StoredResponse, to new: StoredResponse, primary: String
    ) -> [String]? {
        let before = named(by: old.head, groups: old.groups, primary: primary)
        let after = named(by: new.head, groups: new.groups, primary: primary)
        if before == after { return tags }
        let replaced = Set(before)
        return Self.union(tags.filter { !replaced.contains($0) }, after)
    }

    private func named(by head: HTTPResponse, groups: [String], primary: String) -> [String] {
        var tags: [String] = []
        if !groups.isEmpty, let slashes = primary.firstRange(of: "://") {
            let start =
                primary[..<slashes.lowerBound].lastIndex(of: " ").map(primary.index(after:)) ?? primary.startIndex
            let origin = String(
                primary[start...].prefix(upTo: primary[slashes.upperBound...].firstIndex(of: "/") ?? primary.endIndex))
            tags += groups.map { Self.tag(group: $0, origin: origin) }
        }
        for name in fields {
            for value in head.headerFields[values: name] {
                tags += value.split { $0 == "," || $0 == " " || $0 == "\t" }.map { Self.held(String($0)) }
            }
        }
        return tags
    }

    /// The tag of a group (RFC 9875 section 2), which belongs to one origin.
    static func tag(group: String, origin: String) -> String { held("group \(origin) \(group)", as: "group") }

    /// A tag as the store holds it: by its digest where it is too long, has a NUL, or is one of the store's own.
    static func held(_ tag: String, as kind: String = "tag") -> String {
        tag.utf8.count <= 200 && !tag.utf8.contains(0) && !ReservedNames.has(tag)
            ? tag : "\(kind) \(Digest.of(Array(tag.utf8)))"
    }

    /// The tags of one with those of another, each once; nil if an entry cannot hold them.
    static func union(_ tags: [String], _ more: [String]) -> [String]? {
        var seen: Set<String> = []
        let all = (tags + more).filter { seen.insert($0).inserted }
        return PutOptions.canHold(tags: all) ? all : nil
    }
}

extension PutOptions {
    /// With the tags of an entry that is added to, and at least its lifetime: it must not be lost, nor hidden from a
    /// purge, for what is added to it.
    func extending(_ entry: Attributes) -> PutOptions {
        var options = withReservedNames
        // Where there is no room, what is added is not listed.
        options.tags = ResponseTags.union(entry.tags, tags) ?? entry.tags
        if case .until(let end) = lifetime { options.lifetime = entry.expires.map { .until(max(end, $0)) } ?? .never }
        return options
    }
}
