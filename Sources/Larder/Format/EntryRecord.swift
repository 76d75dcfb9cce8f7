/// The value of the `entries` database: all that is known of one key. `docs/format.md` has it field by field.
struct EntryRecord: Equatable {
    var version: UInt16 = 0
    var policy = StoragePolicy.permanent
    var isPinned = false
    var isPinnedByTag = false
    var hits: UInt32 = 0
    var id: UInt64 = 0
    /// Key of the body's row in `blobs`; 0 where the body is part of the record.
    var blob: UInt64 = 0
    /// Bytes of the body.
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
    /// The body where it is part of the record; nil where it is in `blobs`.
    var embedded: Embedded?

    /// A body that is part of its entry's record.
    struct Embedded: Equatable {
        var bytes: [UInt8]
        /// The first eight bytes of its SHA-256, as they stand in memory.
        var digestPrefix: UInt64

        init(_ bytes: [UInt8], _ digest: Digest) {
            self.init(bytes, prefix: Self.prefix(digest))
        }

        fileprivate init(_ bytes: [UInt8], prefix: UInt64) {
            self.bytes = bytes
            digestPrefix = prefix
        }

        var digest: Digest { Digest.of(bytes) }

        /// True if the bytes are those that were put.
        var isSound: Bool { Self.prefix(digest) == digestPrefix }

        static func prefix(_ digest: Digest) -> UInt64 { digest.withBytes { $0.field(0) } }
    }

    /// The format in which records are written. 1, without a seal, and 2 are read, too.
    static let format: UInt8 = 3
    /// What a record has at least, in any format.
    static let leastLength = 50
    /// What comes before the parts of variable length in formats 1 and 2.
    static let olderLength = 88

    private enum Flag {
        static let pinned: UInt8 = 1
        static let pinnedByTag: UInt8 = 2
        static let inProgress: UInt8 = 4
        static let policyShift: UInt8 = 4
    }

    /// Places of fields in the formats 1 and 2; up to the blob they are those of format 3.
    private enum Offset {
        static let format = 0
        static let flags = 1
        static let version = 2
        static let hits = 4
        static let id = 8
        static let check = 14
        static let blob = 16
        static let length = 24
        static let stamp = 32
        static let stored = 40
        static let accessed = 48
        static let expires = 56
        static let created = 64
        static let session = 72
    }

    /// Places of fields in format 3.
    private enum Lean {
        static let stamp = 24
        static let stored = 32
        static let accessed = 40
        static let fields = 48
    }

    init() {}

    /// The optional parts that the encoded record has.
    private var fields: Fields {
        var fields: Fields = embedded == nil ? .length : []
        if expires != .max { fields.insert(.expires) }
        if created != stored { fields.insert(.created) }
        if session != 0 { fields.insert(.session) }
        if !longKey.isEmpty { fields.insert(.longKey) }
        if !tags.isEmpty { fields.insert(.tags) }
        if metadataBytes > 0 { fields.insert(.metadata) }
        if seal == nil { fields.insert(.unsealed) }
        return fields
    }

    /// Length of the encoded record.
    var byteCount: Int {
        fields.headLength + longKey.count + tagBytes + metadataBytes + (embedded?.bytes.count ?? 0)
    }

    private var tagBytes: Int { tags.isEmpty ? 0 : tags.reduce(0) { $0 + 1 + $1.utf8.count } }
    private var metadataBytes: Int { metadata.count + (progress?.byteCount ?? 0) }

    var bytes: [UInt8] {
        let length = byteCount
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<length]))
            count = length
        }
    }

    /// Encodes the record into exactly `byteCount` bytes.
    func write(to raw: UnsafeMutableRawBufferPointer) {
        var flags = policy.rawValue << Flag.policyShift
        if isPinned { flags |= Flag.pinned }
        if isPinnedByTag { flags |= Flag.pinnedByTag }
        if progress != nil { flags |= Flag.inProgress }
        raw.setField(Offset.format, Self.format)
        raw.setField(Offset.flags, flags)
        raw.setField(Offset.version, version)
        raw.setField(Offset.hits, hits)
        raw.setField(Offset.id, id | UInt64(seal?.check ?? 0) << Seal.shift)
        raw.setField(
            Offset.blob, embedded?.digestPrefix ?? (blob | UInt64(seal?.digestTag ?? 0) << Seal.shift))
        raw.setField(Lean.stamp, stamp)
        raw.setField(Lean.stored, stored)
        raw.setField(Lean.accessed, accessed)
        let fields = fields
        raw.setField(Lean.fields, fields.rawValue)
        var at = Self.leastLength
        func append(_ number: some FixedWidthInteger & BitwiseCopyable) {
            raw.setField(at, number)
            at += number.bitWidth / 8
        }
        func append(_ bytes: some Collection<UInt8>) {
            UnsafeMutableRawBufferPointer(rebasing: raw[at...]).copyBytes(from: bytes)
            at += bytes.count
        }
        if let embedded { append(UInt16(embedded.bytes.count)) } else { append(length) }
        if fields.contains(.expires) { append(expires) }
        if fields.contains(.created) { append(created) }
        if fields.contains(.session) { append(session) }
        // A long key has 479 to 65,536 bytes; its length less one fits 16 bits.
        if fields.contains(.longKey) { append(UInt16(longKey.count - 1)) }
        if fields.contains(.tags) { append(UInt16(tagBytes)) }
        if fields.contains(.metadata) { append(UInt32(metadataBytes)) }
        if !longKey.isEmpty { append(longKey) }
        for tag in tags {
            append(UInt8(tag.utf8.count))
            append(Array(tag.utf8))
        }
        if let progress {
            progress.write(to: UnsafeMutableRawBufferPointer(rebasing: raw[at...]))
            at += progress.byteCount
        }
        if !metadata.isEmpty { append(metadata) }
        if let embedded, !embedded.bytes.isEmpty { append(embedded.bytes) }
    }

    /// Changes what a touch changes in an encoded record, of any format.
    static func touch(_ raw: UnsafeMutableRawBufferPointer, stamp: UInt64, hits: UInt32, accessed: Int64) {
        let old = UnsafeRawBufferPointer(raw)
        let isLean = old[Offset.format] == format
        raw.setField(isLean ? Lean.stamp : Offset.stamp, stamp)
        raw.setField(
            Offset.hits, UInt32(clamping: UInt64(old.field(Offset.hits, as: UInt32.self)) + UInt64(hits)))
        let place = isLean ? Lean.accessed : Offset.accessed
        raw.setField(place, max(old.field(place, as: Int64.self), accessed))
    }

    /// Sets to 0 what the check of the seal leaves out, in an encoded record of any format: what each use changes, and
    /// the check itself.
    static func clearWhatUseChanges(_ raw: UnsafeMutableRawBufferPointer) {
        let isLean = raw[Offset.format] == format
        raw.setField(Offset.hits, UInt32(0))
        raw.setField(Offset.check, UInt16(0))
        raw.setField(isLean ? Lean.stamp : Offset.stamp, UInt64(0))
        raw.setField(isLean ? Lean.accessed : Offset.accessed, UInt64(0))
    }

    /// Decodes a record; nil if it is not one (damage: the caller treats the entry as absent and reports it).
    init?(_ raw: UnsafeRawBufferPointer) {
        guard let view = EntryView(raw), let parts = view.parts else { return nil }
        let flags: UInt8 = raw.field(Offset.flags)
        guard let policy = StoragePolicy(rawValue: flags >> Flag.policyShift) else { return nil }
        self.policy = policy
        isPinned = flags & Flag.pinned != 0
        isPinnedByTag = flags & Flag.pinnedByTag != 0
        version = raw.field(Offset.version)
        hits = raw.field(Offset.hits)
        id = raw.field(Offset.id)
        if view.isSealed {
            let place: UInt64 = raw.field(Offset.blob)
            seal = Seal(
                digestTag: view.isEmbedded ? 0 : UInt16(truncatingIfNeeded: place >> Seal.shift),
                check: UInt16(truncatingIfNeeded: id >> Seal.shift))
        }
        id &= Seal.numberMask
        blob = view.blob
        stamp = view.stamp
        expires = view.expires
        length = view.length
        if view.format == Self.format {
            stored = raw.field(Lean.stored)
            accessed = raw.field(Lean.accessed)
            created = view.wide(.created).map { Int64(bitPattern: $0) } ?? stored
            session = view.wide(.session) ?? 0
        } else {
            stored = raw.field(Offset.stored)
            accessed = raw.field(Offset.accessed)
            created = raw.field(Offset.created)
            session = raw.field(Offset.session)
        }
        longKey = Array(raw[parts.longKey])
        var at = parts.tags.lowerBound
        while at < parts.tags.upperBound {
            let length = Int(raw[at])
            // A tag has at least a byte.
            guard length > 0, at + 1 + length <= parts.tags.upperBound,
                let tag = String(validating: raw[(at + 1)..<(at + 1 + length)], as: UTF8.self)
            else { return nil }
            tags.append(tag)
            at += 1 + length
        }
        if flags & Flag.inProgress != 0 {
            // The seal says that the body is in progress, too.
            guard seal != nil, !view.isEmbedded, let found = Progress(view.bytes(parts.metadata)) else { return nil }
            progress = found
        }
        metadata = Array(raw[(parts.metadata.lowerBound + (progress?.byteCount ?? 0))..<parts.metadata.upperBound])
        if view.isEmbedded {
            embedded = Embedded(Array(raw[parts.body]), prefix: view.digestPrefix)
        }
    }

    /// The whole key of the entry under `indexKey`.
    func key(_ indexKey: [UInt8]) -> Key { Key(bytes: wholeKey(indexKey)) }
    func wholeKey(_ indexKey: [UInt8]) -> [UInt8] { longKey.isEmpty ? indexKey : longKey }

    /// True if displacement passes the entry by.
    var isKept: Bool { isPinned || isPinnedByTag }

    func isExpired(at now: Timestamp) -> Bool { expires <= now.microseconds }
}
