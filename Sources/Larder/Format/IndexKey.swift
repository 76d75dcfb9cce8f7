/// How a key of up to 65,536 bytes fits LMDB's 511.
///
/// Keys up to 478 bytes are stored as they are. A longer one is stored as its first 478 bytes, a zero byte, and the
/// SHA-256 of the whole: 511 bytes, a length no short key has, so the two kinds cannot be confused. The record then
/// holds the whole key, which is compared on lookup. A key's first 478 bytes order and group it either way, so a prefix
/// is always one contiguous range.
enum IndexKey {
    static let prefixLength = 478
    static let longLength = prefixLength + 1 + Digest.length

    /// The bytes under which `key` is in the index.
    static func bytes(for key: Key) -> [UInt8] {
        guard isLong(key) else { return key.bytes }
        return Array(key.bytes[..<prefixLength]) + [0] + Digest.of(key.bytes).bytes
    }

    static func isLong(_ key: Key) -> Bool { key.bytes.count > prefixLength }

    /// Runs `body` with the index bytes of `key`, without a copy for short keys.
    @inline(__always)
    static func with<R>(_ key: Key, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        if isLong(key) { return try bytes(for: key).withUnsafeBytes(body) }
        return try key.bytes.withUnsafeBytes(body)
    }
}
