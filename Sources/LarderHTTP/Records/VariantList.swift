import HTTPTypes
import Larder

/// The list of a URL's variants (RFC 9111 section 4.1), which is stored under the URL if responses vary; for tools.
///
/// The list has no body: each variant is an entry under its own key.
public struct VariantList: Sendable, Hashable {
    /// The keys of the variants' entries, the one stored last at the end. An entry may be missing.
    public let keys: [Key]

    /// Reads an entry's metadata; nil for an entry that is not the list of a URL's variants.
    ///
    /// - Parameter entry: the attributes of an entry of an HTTP cache's store.
    public init?(_ entry: Attributes) {
        guard let index = VariantIndex(entry.metadata) else { return nil }
        keys = index.variants.map { VariantIndex.key(String(decoding: entry.key.bytes, as: UTF8.self), $0) }
    }

    /// The prefix of the keys of a URL's variants, which no other key of an HTTP cache has.
    ///
    /// - Parameter key: the key of the list: the URL, or the key that a key policy made from it.
    /// - Returns: the prefix, for a listing or a removal.
    public static func prefix(of key: Key) -> Key { Key(bytes: key.bytes + Array(VariantIndex.separator.utf8)) }
}

extension ResponseSummary {
    /// True if a request selects the response (RFC 9111 section 4.1).
    ///
    /// - Parameter fields: the fields of the request.
    /// - Returns: true also for a response that does not vary.
    public func isSelected(by fields: HTTPFields) -> Bool { selecting.matches(fields) }
}
