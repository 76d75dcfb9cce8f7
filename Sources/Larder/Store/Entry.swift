/// A hit: a body and its attributes.
public struct Entry: Sendable {
    /// The key it was looked up by.
    public let key: Key
    /// The bytes.
    public let body: Body
    let source: Source

    /// Decoded when asked for: most hits want the bytes only.
    enum Source: Sendable {
        case index(record: RecordCopy, head: BlobRecord)
        /// The body is part of the record.
        case embedded(RecordCopy)
        /// With what is known of the entry it overwrites, at the time of the lookup.
        case pending(PendingPut, PendingPut.Inheritance)
    }

    /// The caller's bytes, as put.
    public var metadata: [UInt8] {
        switch source {
        case .index(let record, _), .embedded(let record): return record.metadata
        case .pending(let put, _): return put.options.metadata
        }
    }

    /// SHA-256 of the body: of the bytes that were put, or for a small body that is part of its entry in the index, of
    /// the bytes that were read.
    public var digest: Digest {
        switch source {
        case .index(_, let head): return head.digest
        case .embedded: return body.digestInMemory
        case .pending(let put, _): return put.digest
        }
    }

    /// False if the body was read from the index and is not what was put. Files are not looked at.
    package var isIntact: Bool {
        switch source {
        case .index(_, let head):
            head.location == .file || body.compressedForm != nil || body.digestInMemory == head.digest
        case .embedded(let record): record.decoded.fits(body.digestInMemory)
        case .pending: true
        }
    }

    /// When it stops being fresh, without decoding the rest.
    var expires: Timestamp {
        switch source {
        case .index(let record, _), .embedded(let record): return record.expires
        case .pending(let put, _): return put.expires
        }
    }

    /// The attributes that a lookup finds. `references` and `leases` are nil; `Store.attributes(of:)` looks them up.
    public var attributes: Attributes {
        switch source {
        case .index(let record, let head):
            return Attributes(key: key, record: record.decoded, head: head, references: nil)
        case .embedded(let record):
            let head = BlobRecord(embedded: digest, length: UInt64(clamping: body.length.bytes))
            return Attributes(key: key, record: record.decoded, head: head, references: nil)
        case .pending(let put, let known):
            return Attributes(pending: put, known, references: nil)
        }
    }
}
