/// The names reserved for Larder: keys and tags that begin with `larder:`. Packages keep their records under such keys,
/// and displacement reads some of the tags, so callers cannot store anything with one. `docs/format.md` lists them.
package enum ReservedNames {
    package static let prefix = "larder:"
    private static let bytes = Array(prefix.utf8)

    // The first byte alone tells nearly all names apart, and costs no iterator: every put comes by here.
    private static let first = UInt8(ascii: "l")

    package static func has(_ tag: String) -> Bool { tag.utf8.first == first && tag.utf8.starts(with: bytes) }

    static func has(_ key: Key) -> Bool {
        let name = key.bytes
        return name.count >= bytes.count && name[0] == first && name.starts(with: bytes)
    }

    static func refuse(tag: String) throws(LarderError) {
        if has(tag) { throw refusal("the tag '\(Key(tag))'") }
    }

    static func refuse(_ key: Key) throws(LarderError) {
        if has(key) { throw refusal("the key '\(key)'") }
    }

    private static func refusal(_ name: String) -> LarderError {
        LarderError(
            .invalidArgument, "\(name) is reserved: what begins with '\(prefix)' is Larder's own; choose another name")
    }
}
