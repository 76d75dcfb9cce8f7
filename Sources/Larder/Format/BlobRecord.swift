import CZlib

/// The relation of the stored bytes of a body to the body.
public enum BodyEncoding: UInt8, Sendable, Hashable {
    /// The body itself.
    case identity = 0
    /// A gzip member (RFC 1952); see `Compression`.
    case gzip = 1
    /// A part of the body, in ranges: the body is in progress.
    case partial = 2
}

/// The head of a value of the `blobs` database. The bytes of an inline body follow it.
struct BlobRecord: Equatable {
    enum Location: UInt8 {
        case inline = 0
        case file = 1
    }

    var location = Location.inline
    var encoding = BodyEncoding.identity
    /// The bytes are lost or did not match the digest: entries that use the blob are misses until it is put again.
    var isDamaged = false
    var length: UInt64 = 0
    var storedLength: UInt64 = 0
    var digest: Digest
    /// `st_blocks` x 512 of the file; 0 for an inline body.
    var allocated: UInt64 = 0
    /// The sync epoch in which a file was written; see `docs/recovery.md`.
    var epoch: UInt64 = 0
    /// The name in `staging/` under which a file was written, where it stays until it is published.
    var token = StagingToken(instance: 0, sequence: 0)

    static let format: UInt8 = 1
    static let inlineLength = 56
    static let fileLength = 88

    /// True if all bytes of the body are there, as far as the record says.
    @inline(__always)
    var isComplete: Bool { !isDamaged && encoding != .partial }

    var headLength: Int { location == .inline ? Self.inlineLength : Self.fileLength }

    init(digest: Digest) { self.digest = digest }

    /// What a blob would say of an embedded body.
    init(embedded: EntryRecord.Embedded) {
        self.init(embedded: embedded.digest, length: UInt64(embedded.bytes.count))
    }

    init(embedded digest: Digest, length: UInt64) {
        self.digest = digest
        self.length = length
        storedLength = length
    }

    /// True if both records lead to the same bytes, neither marked as damaged: what is recorded of the space they take
    /// may differ.
    func isSameFile(as other: BlobRecord) -> Bool {
        !isDamaged && !other.isDamaged && digest == other.digest && location == other.location && token == other.token
    }

    func write(to raw: UnsafeMutableRawBufferPointer) {
        raw.setField(0, Self.format)
        raw.setField(1, location.rawValue)
        raw.setField(2, encoding.rawValue)
        raw.setField(3, UInt8(isDamaged ? 1 : 0))
        raw.setField(4, UInt32(0))
        raw.setField(8, length)
        raw.setField(16, storedLength)
        digest.withBytes { UnsafeMutableRawBufferPointer(rebasing: raw[24..<56]).copyMemory(from: $0) }
        if location == .file {
            raw.setField(56, allocated)
            raw.setField(64, epoch)
            raw.setField(72, token.instance)
            raw.setField(80, token.sequence)
        }
        if encoding == .gzip { raw.setField(4, Self.seal(UnsafeRawBufferPointer(raw), location)) }
    }

    /// CRC-32 of the head of a compressed blob: without it a flipped bit would make a body of the member, or a member
    /// of a body.
    private static func seal(_ raw: UnsafeRawBufferPointer, _ location: Location) -> UInt32 {
        let count = location == .inline ? inlineLength : fileLength
        let start = crc32(0, raw.baseAddress, 4)
        return UInt32(truncatingIfNeeded: crc32(start, raw.baseAddress.map { $0 + 8 }, UInt32(count - 8)))
    }

    /// True if nothing says that the bytes of the value of a blob are not those of its body, in place.
    @inline(__always)
    static func isPlain(_ raw: UnsafeRawBufferPointer) -> Bool {
        raw[2] == BodyEncoding.identity.rawValue && raw.field(4, as: UInt32.self) == 0
    }

    /// True if the value of a blob has the whole gzip member of its body.
    static func isMember(_ raw: UnsafeRawBufferPointer) -> Bool {
        guard raw[2] == BodyEncoding.gzip.rawValue, let head = BlobRecord(raw) else { return false }
        return head.location == .inline && head.isComplete
    }

    /// Decodes the head; nil if it is not one.
    init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count >= Self.inlineLength, raw[0] == Self.format, let location = Location(rawValue: raw[1]),
            let encoding = BodyEncoding(rawValue: raw[2])
        else { return nil }
        self.location = location
        self.encoding = encoding
        isDamaged = raw[3] != 0
        storedLength = raw.field(16)
        // Stored as they are, bytes have one length: a flipped bit in the other must not make a body of it.
        length = encoding == .identity && !isDamaged ? storedLength : raw.field(8)
        digest = Digest(copying: UnsafeRawBufferPointer(rebasing: raw[24..<56]))
        // A blob that was marked has nothing stored: anything else is a flipped mark.
        if isDamaged, storedLength != 0 { return nil }
        if encoding == .gzip {
            guard raw.count >= headLength, raw.field(4) == Self.seal(raw, location),
                isDamaged || Compression.lengths.contains(Int(clamping: length)) && storedLength < length
            else { return nil }
        } else if raw.field(4, as: UInt32.self) != 0 {
            return nil
        }
        switch location {
        case .inline:
            guard encoding != .partial, raw.count - Self.inlineLength == storedLength || isDamaged else { return nil }
        case .file:
            guard raw.count == Self.fileLength else { return nil }
            allocated = raw.field(56)
            epoch = raw.field(64)
            token = StagingToken(instance: raw.field(72), sequence: raw.field(80))
        }
    }

    /// The bytes of an inline body in the record `raw`.
    @inline(__always)
    static func inlineBytes(_ raw: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: raw[inlineLength...])
    }
}

/// The value of the `digests` database: which blob has these bytes, and how many entries use it.
struct DigestRecord: Equatable {
    var blob: UInt64
    var references: UInt64

    static let length = 16

    /// Encodes the record into `length` bytes.
    func write(to raw: UnsafeMutableRawBufferPointer) {
        raw.setField(0, blob)
        raw.setField(8, references)
    }

    /// Runs `body` on the encoded record.
    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withUnsafeTemporaryAllocation(byteCount: Self.length, alignment: 8) { raw in
            write(to: raw)
            return try body(UnsafeRawBufferPointer(raw))
        }
    }

    init(blob: UInt64, references: UInt64) {
        self.blob = blob
        self.references = references
    }

    init?(_ raw: UnsafeRawBufferPointer) {
        guard raw.count == Self.length else { return nil }
        blob = raw.field(0)
        references = raw.field(8)
    }
}
