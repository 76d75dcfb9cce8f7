/// A hit: a body and what is known of it.
public struct Entry: Sendable {
    /// The key it was looked up by.
    public let key: Key
    /// The bytes.
    public let body: Body
    let source: Source

    /// Decoded when asked for: most hits want the bytes only.
    enum Source: Sendable {
        case index(record: RecordCopy, head: BlobRecord)
        case pending(PendingPut)
    }

    /// The caller's bytes, as put.
    public var metadata: [UInt8] {
        switch source {
        case .index(let record, _): return record.metadata
        case .pending(let put): return put.options.metadata
        }
    }

    /// SHA-256 of the body.
    public var digest: Digest {
        switch source {
        case .index(_, let head): return head.digest
        case .pending(let put): return put.digest
        }
    }

    /// All that is known of the entry. `references` is 1 here; `Store.attributes(of:)` looks it up.
    public var attributes: Attributes {
        switch source {
        case .index(let record, let head):
            return Attributes(key: key, record: record.decoded, head: head, references: 1)
        case .pending(let put):
            return Attributes(pending: put)
        }
    }
}
