/// An encoded `EntryRecord`, read in place: where its parts lie, and the few fields a hit needs.
///
/// Formats 1 and 2 have every field at a place of its own. Format 3 leaves out what most entries lack, and may end with
/// the body; see `EntryRecord.Fields`.
struct EntryView {
    let raw: UnsafeRawBufferPointer
    /// Of format 3; what the older ones have stands for itself.
    private let fields: EntryRecord.Fields

    /// Nil if the record is damaged so far that its fields cannot be read.
    @inline(__always)
    init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count >= EntryRecord.leastLength else { return nil }
        self.raw = raw
        switch raw[0] {
        case EntryRecord.format:
            fields = EntryRecord.Fields(rawValue: raw.field(48))
            guard EntryRecord.Fields.all.isSuperset(of: fields), raw.count >= fields.headLength else { return nil }
            // What was written without a seal has none: a flipped bit must not take it away.
            if fields.contains(.unsealed) {
                guard fields.contains(.length), raw.field(14) == 0 as UInt16, raw.field(22) == 0 as UInt16 else {
                    return nil
                }
            }
        case 1, 2:
            fields = .older
            guard raw.count >= EntryRecord.olderLength else { return nil }
        default: return nil
        }
    }

    @inline(__always) var format: UInt8 { raw[0] }
    @inline(__always) private var isOlder: Bool { fields == .older }

    /// True if the body is part of the record.
    @inline(__always) var isEmbedded: Bool { !fields.contains(.length) }

    @inline(__always) var version: UInt16 { raw.field(2) }
    /// Key of the body's row in `blobs`; 0 for an embedded one. No number of a blob reaches the bits of the seal, in
    /// any format.
    @inline(__always) var blob: UInt64 { isEmbedded ? 0 : raw.field(16) & EntryRecord.Seal.numberMask }
    @inline(__always) var stamp: UInt64 { raw.field(isOlder ? 32 : 24) }

    @inline(__always)
    var expires: Int64 {
        if isOlder { return raw.field(56) }
        guard fields.contains(.expires) else { return .max }
        return raw.field(isEmbedded ? 52 : 58)
    }

    /// Bytes of the body.
    @inline(__always)
    var length: UInt64 {
        if isOlder { return raw.field(24) }
        return isEmbedded ? UInt64(raw.field(50, as: UInt16.self)) : raw.field(50)
    }

    /// The first eight bytes of the SHA-256 of an embedded body, as they stand in memory.
    var digestPrefix: UInt64 { raw.field(16) }

    /// Where the parts of variable length lie. The tags are not looked into.
    struct Parts {
        /// The whole key where it is too long for the index, else empty.
        let longKey: Range<Int>
        let tags: Range<Int>
        /// The progress of a body in progress, and the caller's own bytes.
        let metadata: Range<Int>
        /// An embedded body; empty for another.
        let body: Range<Int>
    }

    /// Nil if their lengths are not those of the record, which is damaged then.
    @inline(__always)
    var parts: Parts? {
        var (start, keyField, tags, metadata) = (EntryRecord.olderLength, 0, 0, 0)
        if isOlder {
            keyField = Int(raw.field(82, as: UInt16.self))
            tags = Int(raw.field(80, as: UInt16.self))
            metadata = Int(raw.field(84, as: UInt32.self))
        } else {
            start = fields.wideEnd
            if fields.contains(.longKey) {
                keyField = Int(raw.field(start, as: UInt16.self))
                start += 2
            }
            if fields.contains(.tags) {
                tags = Int(raw.field(start, as: UInt16.self))
                start += 2
            }
            if fields.contains(.metadata) {
                metadata = Int(raw.field(start, as: UInt32.self))
                start += 4
            }
        }
        let keyEnd = start + (keyField == 0 ? 0 : keyField + 1)
        let tagEnd = keyEnd + tags
        let end = tagEnd + metadata
        guard raw.count == end + (isEmbedded ? Int(raw.field(50, as: UInt16.self)) : 0) else { return nil }
        return Parts(longKey: start..<keyEnd, tags: keyEnd..<tagEnd, metadata: tagEnd..<end, body: end..<raw.count)
    }

    /// The bytes of a part, in place.
    @inline(__always)
    func bytes(_ part: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: raw[part]) }

    /// The caller's bytes, in place; nil if the record is damaged.
    @inline(__always)
    var metadata: UnsafeRawBufferPointer? { parts.map { bytes($0.metadata) } }

    /// The body, in place, where it is part of the record; nil where it is not, and if the record is damaged.
    @inline(__always)
    var embedded: UnsafeRawBufferPointer? { isEmbedded ? parts.map { bytes($0.body) } : nil }

    /// False if the blob `record` is not the one that this entry was put with, as far as the two bytes of its digest
    /// tell that the entry keeps.
    @inline(__always)
    func fits(_ blob: UnsafeRawBufferPointer) -> Bool {
        !isSealed || blob.count >= BlobRecord.inlineLength && raw.field(22, as: UInt16.self) == blob.field(24)
    }

    /// True if the record is that of `key` where the index holds only a part of it.
    func hasLongKey(_ key: Key) -> Bool {
        guard let longKey = parts?.longKey else { return false }
        return bytes(longKey).isEqual(to: key.bytes)
    }

    // MARK: The optional fields of format 3

    @inline(__always) func wide(_ field: EntryRecord.Fields) -> UInt64? {
        fields.contains(field) ? raw.field(fields.place(of: field)) : nil
    }

    /// False for a record that was written in format 1, which had no seals.
    @inline(__always) var isSealed: Bool { format != 1 && !fields.contains(.unsealed) }
}

extension EntryRecord {
    /// Which optional parts a record of format 3 has. They stand behind its first 50 bytes in this order: numbers of
    /// eight bytes, then the lengths of the parts, then the parts.
    struct Fields: OptionSet {
        let rawValue: UInt16

        /// The length of a body that is not part of the record. Without it the body is, and its length has two bytes.
        static let length = Fields(rawValue: 1)
        static let expires = Fields(rawValue: 2)
        /// When the key was first put, if that is not when the body was.
        static let created = Fields(rawValue: 4)
        static let session = Fields(rawValue: 8)
        static let longKey = Fields(rawValue: 16)
        static let tags = Fields(rawValue: 32)
        static let metadata = Fields(rawValue: 64)
        /// Has no seal: written in format 1, and changed since.
        static let unsealed = Fields(rawValue: 128)

        static let all = Fields(rawValue: 255)
        /// Stands for the fields of formats 1 and 2.
        static let older = Fields(rawValue: 1 << 15 | 1)

        @inline(__always)
        private func count(_ mask: UInt16) -> Int { (rawValue & mask).nonzeroBitCount }

        /// Where the numbers begin: behind the two bytes of an embedded body's length.
        @inline(__always)
        private var wideStart: Int { EntryRecord.leastLength + (contains(.length) ? 0 : 2) }

        /// Where the numbers end.
        @inline(__always)
        var wideEnd: Int { wideStart + 8 * count(15) }

        /// Where the lengths end, and the parts begin.
        @inline(__always)
        var headLength: Int { wideEnd + 2 * count(48) + 4 * count(64) }

        /// Where one of the numbers lies.
        @inline(__always)
        func place(of field: Fields) -> Int { wideStart + 8 * count(field.rawValue &- 1) }
    }
}
