/// The value of the `entries` database: all that is known of one key. `docs/format.md` has it field by field.
struct EntryRecord: Equatable {
    var version: UInt16 = 0
    var policy = StoragePolicy.permanent
    var isPinned = false
    var isPinnedByTag = false
    var hits: UInt32 = 0
    var id: UInt64 = 0
    var blob: UInt64 = 0
    var length: UInt64 = 0
    /// Key of the entry's row in `recency`, or in `pinned` for a pinned entry.
    var stamp: UInt64 = 0
    var stored: Int64 = 0
    var accessed: Int64 = 0
    /// `Int64.max`: never.
    var expires: Int64 = .max
    var created: Int64 = 0
    /// The open store that owns an entry of policy `session`; 0 for others.
    var session: UInt64 = 0
    var tags: [String] = []
    var metadata: [UInt8] = []
    /// The whole key where it is too long for the index, else empty.
    var longKey: [UInt8] = []
    /// Nil for an entry whose body is complete, as nearly every one is.
    var progress: Progress?
    /// What ties the entry to its key, its body and its own fields; nil in a record of format 1, which has none.
    var seal: Seal?

    /// Formats of a record that are read: 1 without a seal, 2 with one.
    static let formats: ClosedRange<UInt8> = 1...2
    static let fixedLength = 88

    private enum Flag {
        static let pinned: UInt8 = 1
        static let pinnedByTag: UInt8 = 2
        static let inProgress: UInt8 = 4
        static let policyShift: UInt8 = 4
    }

    private enum Offset {
        static let format = 0
        static let flags = 1
        static let version = 2
        static let hits = 4
        static let id = 8
        static let blob = 16
        static let length = 24
        static let stamp = 32
        static let stored = 40
        static let accessed = 48
        static let expires = 56
        static let created = 64
        static let session = 72
        static let tagBytes = 80
        static let keyBytes = 82
        static let metadataBytes = 84
    }

    init() {}

    /// Length of the encoded record.
    var byteCount: Int {
        Self.fixedLength + longKey.count + tagBytes + (progress?.byteCount ?? 0) + metadata.count
    }

    private var tagBytes: Int { tags.isEmpty ? 0 : tags.reduce(0) { $0 + 1 + $1.utf8.count } }

    var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            count = byteCount
        }
    }

    /// Encodes the record into exactly `byteCount` bytes.
    func write(to raw: UnsafeMutableRawBufferPointer) {
        var flags = policy.rawValue << Flag.policyShift
        if isPinned { flags |= Flag.pinned }
        if isPinnedByTag { flags |= Flag.pinnedByTag }
        if progress != nil { flags |= Flag.inProgress }
        raw.setField(Offset.format, seal == nil ? 1 : 2 as UInt8)
        raw.setField(Offset.flags, flags)
        raw.setField(Offset.version, version)
        raw.setField(Offset.hits, hits)
        raw.setField(Offset.id, id | UInt64(seal?.check ?? 0) << Seal.shift)
        raw.setField(Offset.blob, blob | UInt64(seal?.digestTag ?? 0) << Seal.shift)
        raw.setField(Offset.length, length)
        raw.setField(Offset.stamp, stamp)
        raw.setField(Offset.stored, stored)
        raw.setField(Offset.accessed, accessed)
        raw.setField(Offset.expires, expires)
        raw.setField(Offset.created, created)
        raw.setField(Offset.session, session)
        raw.setField(Offset.tagBytes, UInt16(tagBytes))
        // A long key has 479 to 65,536 bytes; its length less one fits 16 bits, and 0 means there is none.
        raw.setField(Offset.keyBytes, UInt16(max(0, longKey.count - 1)))
        raw.setField(Offset.metadataBytes, UInt32(metadata.count + (progress?.byteCount ?? 0)))
        var at = Self.fixedLength
        func append(_ bytes: some Collection<UInt8>) {
            UnsafeMutableRawBufferPointer(rebasing: raw[at...]).copyBytes(from: bytes)
            at += bytes.count
        }
        if !longKey.isEmpty { append(longKey) }
        for tag in tags {
            append(CollectionOfOne(UInt8(tag.utf8.count)))
            append(Array(tag.utf8))
        }
        if let progress {
            progress.write(to: UnsafeMutableRawBufferPointer(rebasing: raw[at...]))
            at += progress.byteCount
        }
        if !metadata.isEmpty { append(metadata) }
    }

    /// Changes what a touch changes in an encoded record of at least `fixedLength` bytes.
    static func touch(_ raw: UnsafeMutableRawBufferPointer, stamp: UInt64, hits: UInt32, accessed: Int64) {
        let old = UnsafeRawBufferPointer(raw)
        raw.setField(Offset.stamp, stamp)
        raw.setField(
            Offset.hits, UInt32(clamping: UInt64(old.field(Offset.hits, as: UInt32.self)) + UInt64(hits)))
        raw.setField(Offset.accessed, max(old.field(Offset.accessed, as: Int64.self), accessed))
    }

    /// Decodes a record; nil if it is not one (damage: the caller treats the entry as absent and reports it).
    init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count >= Self.fixedLength, Self.formats.contains(raw[Offset.format]) else { return nil }
        let flags: UInt8 = raw.field(Offset.flags)
        guard let policy = StoragePolicy(rawValue: flags >> Flag.policyShift) else { return nil }
        self.policy = policy
        isPinned = flags & Flag.pinned != 0
        isPinnedByTag = flags & Flag.pinnedByTag != 0
        version = raw.field(Offset.version)
        hits = raw.field(Offset.hits)
        id = raw.field(Offset.id)
        blob = raw.field(Offset.blob)
        if raw[Offset.format] == 2 {
            seal = Seal(
                digestTag: UInt16(truncatingIfNeeded: blob >> Seal.shift),
                check: UInt16(truncatingIfNeeded: id >> Seal.shift))
            id &= Seal.numberMask
            blob &= Seal.numberMask
        }
        length = raw.field(Offset.length)
        stamp = raw.field(Offset.stamp)
        stored = raw.field(Offset.stored)
        accessed = raw.field(Offset.accessed)
        expires = raw.field(Offset.expires)
        created = raw.field(Offset.created)
        session = raw.field(Offset.session)
        let keyField = Int(raw.field(Offset.keyBytes, as: UInt16.self))
        let keyBytes = keyField == 0 ? 0 : keyField + 1
        let tagBytes = Int(raw.field(Offset.tagBytes, as: UInt16.self))
        let metadataBytes = Int(raw.field(Offset.metadataBytes, as: UInt32.self))
        guard raw.count == Self.fixedLength + keyBytes + tagBytes + metadataBytes else { return nil }
        var at = Self.fixedLength
        longKey = Array(raw[at..<(at + keyBytes)])
        at += keyBytes
        let tagEnd = at + tagBytes
        while at < tagEnd {
            let length = Int(raw[at])
            // A tag has at least a byte.
            guard length > 0, at + 1 + length <= tagEnd,
                let tag = String(validating: raw[(at + 1)..<(at + 1 + length)], as: UTF8.self)
            else { return nil }
            tags.append(tag)
            at += 1 + length
        }
        if flags & Flag.inProgress != 0 {
            // The seal says that the body is in progress, too.
            guard seal != nil, let found = Progress(UnsafeRawBufferPointer(rebasing: raw[tagEnd...])) else {
                return nil
            }
            progress = found
        }
        metadata = Array(raw[(tagEnd + (progress?.byteCount ?? 0))...])
    }

    /// The whole key of the entry under `indexKey`.
    func key(_ indexKey: [UInt8]) -> Key { Key(bytes: wholeKey(indexKey)) }
    func wholeKey(_ indexKey: [UInt8]) -> [UInt8] { longKey.isEmpty ? indexKey : longKey }

    /// True if displacement passes the entry by.
    var isKept: Bool { isPinned || isPinnedByTag }

    func isExpired(at now: Timestamp) -> Bool { expires <= now.microseconds }
}
