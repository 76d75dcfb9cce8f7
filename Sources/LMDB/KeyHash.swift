/// A quick hash of keys. Keys that collide on purpose only lose a short cut.
public enum KeyHash {
    /// Of the bytes of a key.
    @inlinable
    public static func of(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: key.count) &* 0x9E37_79B9_7F4A_7C15
        var offset = 0
        while offset + 8 <= key.count {
            hash = mix(hash ^ key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < key.count {
            rest = rest << 8 | UInt64(key[offset])
            offset += 1
        }
        return mix(hash ^ rest)
    }

    /// Of a key of eight bytes in the machine's byte order.
    @inlinable
    public static func of(_ key: UInt64) -> UInt64 { withUnsafeBytes(of: key) { of($0) } }

    @inlinable
    static func mix(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return product.high ^ product.low
    }
}

/// Which keys of some databases a write transaction has changed, about: a key's hash leads to one of 4,096 buckets, and
/// a bucket of which any key changed is one that changed.
public struct ChangedBuckets: Sendable {
    /// How many buckets there are.
    public static let count = 4096

    /// Empty as long as there is none.
    private var words: [UInt64] = []
    /// True if all keys may have changed.
    public private(set) var isAll = false

    /// The bucket of a key.
    @inlinable
    public static func bucket(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 40) & (count - 1) }

    mutating func note(_ key: UnsafeRawBufferPointer) {
        if words.isEmpty { words = [UInt64](repeating: 0, count: Self.count / 64) }
        let bucket = Self.bucket(KeyHash.of(key))
        words[bucket >> 6] |= 1 << UInt64(bucket & 63)
    }

    mutating func noteAll() { isAll = true }

    /// Calls `body` with each bucket that changed.
    public func forEach(_ body: (Int) -> Void) {
        for (position, word) in words.enumerated() {
            var rest = word
            while rest != 0 {
                body(position << 6 | rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
    }
}
