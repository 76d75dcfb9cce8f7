/// An entity tag (RFC 9110 section 8.8.3).
public struct EntityTag: Sendable, Hashable {
    /// True if the tag has the prefix `W/`.
    public var isWeak: Bool
    /// The opaque tag with its quotes, as received.
    public var opaque: [UInt8]

    /// Parses exactly one entity tag. An unquoted value, a lower-case `w/` and anything after the tag give nil.
    ///
    /// - Parameter bytes: without white space around it.
    public init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard let start = bytes.withUnsafeBytes({ Self.opaqueStart($0) }) else { return nil }
        isWeak = start > 0
        opaque = Array(bytes[start...])
    }

    /// Where the opaque part begins; nil if the bytes are not exactly one entity tag.
    private static func opaqueStart(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let start = bytes.count >= 2 && bytes[0] == 0x57 && bytes[1] == 0x2F ? 2 : 0
        let end = bytes.count - 1
        guard end > start, bytes[start] == FieldBytes.quote, bytes[end] == FieldBytes.quote else { return nil }
        for byte in bytes[(start + 1)..<end] where byte != 0x21 && (byte < 0x23 || byte == 0x7F) { return nil }
        return start
    }

    /// Whether a value of `If-None-Match` is one entity tag, and the same bytes as another: then they match weakly.
    static func isSame(_ value: UnsafeRawBufferPointer, _ tag: UnsafeRawBufferPointer) -> Bool {
        guard value.count == tag.count else { return false }
        for index in 0..<value.count where value[index] != tag[index] { return false }
        return opaqueStart(value) != nil
    }

    /// The tag as it is written in a field.
    public var bytes: [UInt8] { isWeak ? [0x57, 0x2F] + opaque : opaque }

    /// Weak comparison (section 8.8.3.2): the opaque parts agree. For `If-None-Match`.
    ///
    /// - Parameter other: another tag.
    /// - Returns: true if they match.
    public func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// Strong comparison (section 8.8.3.2): neither tag is weak and the opaque parts agree. For `If-Range` and for
    /// combining.
    ///
    /// - Parameter other: another tag.
    /// - Returns: true if they match.
    public func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// The tags of an `If-None-Match` value (section 13.1.2): members that are not entity tags are left out.
    ///
    /// Backslashes and commas are ordinary bytes inside a tag, so that the list grammar for quoted strings does not
    /// fit here.
    static func list(_ bytes: [UInt8]) -> [EntityTag] {
        var tags: [EntityTag] = []
        var index = 0
        while index < bytes.count {
            while index < bytes.count, bytes[index] == FieldBytes.comma || FieldBytes.isSpace(bytes[index]) {
                index += 1
            }
            let start = index
            var quotes = 0
            while index < bytes.count, quotes == 1 || bytes[index] != FieldBytes.comma {
                if bytes[index] == FieldBytes.quote { quotes += 1 }
                index += 1
            }
            if let tag = EntityTag(FieldBytes.trimmed(bytes[start..<index])) { tags.append(tag) }
        }
        return tags
    }
}
