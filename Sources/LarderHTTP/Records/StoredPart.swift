import HTTPCaching
import Larder

/// A part of a representation that is stored as an entry of its own, so that a range that is added costs its own bytes,
/// not those that are there already.
///
/// The response's record lists its parts. The entry of a part is a body in progress that has each byte at its position
/// in the representation, so that further ranges are written into it. Or, where that cannot be, it is complete, and has
/// one range behind the other. Its metadata begins with two bytes, which tell the two apart: kind, 3, and version, 2 or
/// 1. While a whole response is written to a part, the response's record follows them, for other processes:
/// ``head(of:)``.
struct StoredPart: Hashable {
    static let kind: UInt8 = 3
    /// Of a part with one range behind the other.
    static let packedMetadata: [UInt8] = [kind, 1]
    /// Of a part with each byte at its position.
    static let placedMetadata: [UInt8] = [kind, 2]
    /// Whether an entry with this metadata is a part with each byte at its position.
    static func isPlaced(_ metadata: [UInt8]) -> Bool { metadata.starts(with: placedMetadata) }

    /// The response that is being written to the part with this metadata; nil if others need not know of it.
    static func head(of metadata: [UInt8]) -> StoredResponse? {
        guard isPlaced(metadata), metadata.count > placedMetadata.count else { return nil }
        return StoredRecord(Array(metadata[placedMetadata.count...]))?.response
    }

    /// The most parts of a response, and the most ranges of all of them: what does not fit is not stored.
    static let limit = 128
    static let rangeLimit = 1_024

    /// Tells the key of this part from those of all others.
    let id: UInt64
    /// The positions of the representation that it holds.
    let ranges: ByteRanges

    init(id: UInt64 = .random(in: .min ... .max), ranges: ByteRanges) {
        self.id = id
        self.ranges = ranges
    }

    /// The key of a part of the response under `key`. No URI has a space.
    func key(_ key: Key) -> Key { Self.key(key, id) }

    static let separator = " part="

    static func key(_ key: Key, _ id: UInt64) -> Key {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(key.bytes.count + separator.utf8.count + 16)
        bytes += key.bytes
        bytes += separator.utf8
        for shift in stride(from: 60, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: id >> UInt64(shift)) & 15
            bytes.append(digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10))
        }
        return Key(bytes: bytes)
    }

    /// The key of the response whose part has this key.
    static func owner(of key: Key) -> Key { Key(bytes: Array(key.bytes.dropLast(separator.utf8.count + 16))) }

    /// The encoding of a list: for each part its id, u64, the number of its ranges, u16, and those as two i64 each.
    static func encode(_ parts: [StoredPart]) -> [UInt8] {
        var bytes: [UInt8] = []
        for part in parts {
            bytes.append(littleEndian: part.id)
            bytes.append(littleEndian: UInt16(clamping: part.ranges.ranges.count))
            for range in part.ranges.ranges {
                bytes.append(littleEndian: range.lowerBound)
                bytes.append(littleEndian: range.upperBound)
            }
        }
        return bytes
    }

    /// Reads a list; nil when the bytes are anything else.
    static func decode(_ bytes: [UInt8]) -> [StoredPart]? {
        var parts: [StoredPart] = []
        var offset = 0
        while offset < bytes.count {
            guard bytes.count - offset >= 10, parts.count < limit else { return nil }
            let id: UInt64 = bytes.littleEndian(at: offset)
            let count = Int(bytes.littleEndian(at: offset + 8) as UInt16)
            offset += 10
            guard count > 0, bytes.count - offset >= 16 * count,
                let ranges = ByteRanges(encoded: bytes, in: offset..<(offset + 16 * count))
            else { return nil }
            parts.append(StoredPart(id: id, ranges: ranges))
            offset += 16 * count
        }
        return parts.isEmpty ? nil : parts
    }
}

extension ByteRanges {
    /// Reads pairs of i64 that ascend and do not touch; nil when they do not.
    init?(encoded bytes: [UInt8], in place: Range<Int>) {
        self.init()
        var end: Int64 = -1
        for offset in stride(from: place.lowerBound, to: place.upperBound, by: 16) {
            let lower: Int64 = bytes.littleEndian(at: offset)
            let upper: Int64 = bytes.littleEndian(at: offset + 8)
            guard lower > end, upper > lower else { return nil }
            insert(lower..<upper)
            end = upper
        }
    }
}
