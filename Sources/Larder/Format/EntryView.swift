/// The few fields a hit needs, read in place.
struct EntryView {
    let raw: UnsafeRawBufferPointer

    /// Nil if the record is damaged.
    @inline(__always)
    init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count >= EntryRecord.fixedLength, EntryRecord.formats.contains(raw[0]) else { return nil }
        self.raw = raw
    }

    @inline(__always) var version: UInt16 { raw.field(2) }
    /// No number of a blob reaches the bits of the seal, in any format.
    @inline(__always) var blob: UInt64 { raw.field(16) & EntryRecord.Seal.numberMask }
    @inline(__always) var length: UInt64 { raw.field(24) }
    @inline(__always) var stamp: UInt64 { raw.field(32) }
    @inline(__always) var expires: Int64 { raw.field(56) }

    /// The caller's bytes, in place; nil if the record is damaged.
    @inline(__always)
    var metadata: UnsafeRawBufferPointer? {
        let longKey = Int(raw.field(82, as: UInt16.self))
        let start = EntryRecord.fixedLength + Int(raw.field(80, as: UInt16.self)) + (longKey == 0 ? 0 : longKey + 1)
        guard raw.count == start + Int(raw.field(84, as: UInt32.self)) else { return nil }
        return UnsafeRawBufferPointer(rebasing: raw[start...])
    }

    /// False if the blob `record` is not the one that this entry was put with, as far as the two bytes of its digest
    /// tell that the entry keeps.
    @inline(__always)
    func fits(_ blob: UnsafeRawBufferPointer) -> Bool {
        raw[0] == 1 || blob.count >= BlobRecord.inlineLength && raw.field(22, as: UInt16.self) == blob.field(24)
    }

    /// True if the record is that of `key` where the index holds only a part of it.
    func hasLongKey(_ key: Key) -> Bool {
        let count = key.bytes.count
        guard Int(raw.field(82, as: UInt16.self)) == count - 1, raw.count >= EntryRecord.fixedLength + count else {
            return false
        }
        return raw[EntryRecord.fixedLength..<(EntryRecord.fixedLength + count)].elementsEqual(key.bytes)
    }
}
