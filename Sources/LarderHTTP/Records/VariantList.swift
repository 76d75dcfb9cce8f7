import HTTPTypes
import Larder

/// The list of a URL's variants (RFC 9111 section 4.1), which is stored under the URL if responses vary; for tools.
///
/// The list has no body of its own: each variant is an entry under a key of its own.
public struct VariantList: Sendable, Hashable {
    /// The keys of the variants' entries, the one stored last at the end. An entry may be gone.
    public let keys: [Key]

    /// Reads an entry's metadata; nil for any other entry.
    public init?(_ entry: Attributes) {
        guard let index = VariantIndex(entry.metadata) else { return nil }
        keys = index.variants.map { VariantIndex.key(String(decoding: entry.key.bytes, as: UTF8.self), $0) }
    }

    /// What the keys of a URL's variants start with, and no other key of an HTTP cache.
    /// - Parameter key: of the list: the URL, or what a key policy made of it.
    public static func prefix(of key: Key) -> Key { Key(bytes: key.bytes + Array(VariantIndex.separator.utf8)) }
}

extension ResponseSummary {
    /// Whether a request with these fields selects the response: true for one that does not vary (RFC 9111 section
    /// 4.1).
    public func isSelected(by fields: HTTPFields) -> Bool { selecting.matches(fields) }
}
