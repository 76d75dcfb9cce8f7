import HTTPCaching
import Larder

/// What is stored under the primary key of responses that vary (RFC 9111 section 4.1): the secondary keys there are,
/// the latest last.
///
/// A byte of kind, 2, one of version, 1, then for each variant its length as u32, least significant byte first, and
/// `SelectingFields.encoded`. An index that was lost hides its variants; one that names a variant that is gone costs a
/// lookup.
struct VariantIndex: Hashable {
    static let kind: UInt8 = 2
    static let version: UInt8 = 1
    /// The most variants of one key. Beyond it the oldest is no longer found.
    static let limit = 64

    private(set) var variants: [SelectingFields] = []

    init() {}

    /// Reads an encoding; nil when the bytes are anything else.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 2, bytes[0] == Self.kind, bytes[1] == Self.version else { return nil }
        var offset = 2
        while offset < bytes.count {
            guard bytes.count - offset >= 4 else { return nil }
            let length = Int(bytes.littleEndian(at: offset) as UInt32)
            offset += 4
            guard length <= bytes.count - offset, variants.count < Self.limit,
                let selecting = SelectingFields(encoded: Array(bytes[offset..<(offset + length)]))
            else { return nil }
            variants.append(selecting)
            offset += length
        }
    }

    /// The encoding.
    var encoded: [UInt8] {
        var bytes = [Self.kind, Self.version]
        for variant in variants {
            let encoded = variant.encoded
            bytes.append(littleEndian: UInt32(clamping: encoded.count))
            bytes += encoded
        }
        return bytes
    }

    /// Puts a variant at the end; returns those that had to give way.
    mutating func insert(_ variant: SelectingFields) -> [SelectingFields] {
        variants.removeAll { $0 == variant }
        variants.append(variant)
        let surplus = max(0, variants.count - Self.limit)
        defer { variants.removeFirst(surplus) }
        return Array(variants.prefix(surplus))
    }

    /// Takes a variant out; false if it was not there.
    mutating func remove(_ variant: SelectingFields) -> Bool {
        let count = variants.count
        variants.removeAll { $0 == variant }
        return variants.count < count
    }

    /// The key of a variant: the primary key, ` vary=` and the first half of the SHA-256 of the secondary key. No URI
    /// has a space.
    static func key(_ primary: String, _ variant: SelectingFields) -> Key {
        Key(bytes: Array(primary.utf8) + suffix(of: variant))
    }

    /// What follows the primary key in that of a variant.
    static func suffix(of variant: SelectingFields) -> [UInt8] {
        Array((separator + String(Digest.of(variant.encoded).description.prefix(digits))).utf8)
    }

    /// The names of the fields that select the first variant; nil where there is none, and for other bytes.
    static func names(_ bytes: UnsafeRawBufferPointer) -> [String]? {
        guard bytes.count >= 6, bytes[0] == kind, bytes[1] == version else { return nil }
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt32.self)))
        guard length <= bytes.count - 6 else { return nil }
        return SelectingFields.names(encoded: UnsafeRawBufferPointer(rebasing: bytes[6..<(6 + length)]))
    }

    static let separator = " vary="
    private static let digits = 32

    /// The primary key of a response's key, which is the key itself where the response does not vary.
    static func primaryKey(of key: Key) -> Key {
        let end = key.bytes.count - digits - separator.utf8.count
        guard end > 0, key.bytes[end...].starts(with: separator.utf8) else { return key }
        return Key(bytes: Array(key.bytes[..<end]))
    }
}
