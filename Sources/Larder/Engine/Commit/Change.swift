/// A change to the store, ready to be applied: bodies are staged, arguments are checked.
///
/// Puts and removals without a condition are seen by readers of this process before their commit (`PendingSet`). All
/// others depend on what is there when they are applied, and belong to a job (`PendingJob`).
enum Change: Sendable {
    /// Stores an entry.
    case put(PendingPut, Condition)
    /// Removes the entry under a key.
    case remove(PendingRemoval, Condition)
    /// Changes fields of an entry.
    indirect case alter(Alteration)
    /// Removes every entry with this content. With the index keys of those that had it when it was looked for, and how
    /// many were removed from memory.
    indirect case removeContent(Digest, [[UInt8]], fromMemory: Int = 0)
    /// Takes a lease, or claims a key unless another process has claimed it.
    indirect case lease(LeaseRequest)
    /// Deletes the row of a lease or claim.
    indirect case endLease([UInt8])
    /// A step of a writer of a body in progress.
    indirect case partial(PartialChange)
    /// Its result is known: it cannot be done, or is done already.
    indirect case over(WriteResult)

    /// What has to be under the key of a change when it is applied.
    enum Condition: Sendable {
        /// Whatever it is.
        case none
        /// No fresh entry.
        case vacant
        /// This entry, still.
        case unchanged(Expected)
    }

    /// An entry as its caller has seen it.
    final class Expected: Sendable {
        let digest: Digest
        let metadata: [UInt8]

        init(_ entry: Entry) {
            digest = entry.digest
            metadata = entry.metadata
        }

        init(_ attributes: Attributes) {
            digest = attributes.digest
            metadata = attributes.metadata
        }
    }

    /// New fields of an entry, and whose they are.
    struct Alteration: Sendable {
        let key: Key
        let fields: EntryChange
        let condition: Condition
        /// Of the store whose call this is.
        let configuration: Configuration
        /// Only entries of this application version; nil: of any.
        let version: UInt16?

        /// True for entries that the store of the caller sees.
        func sees(_ version: UInt16) -> Bool { self.version.map { $0 == version } ?? true }
    }

    /// A lease that is asked for, or the claim of a key whose value is computed (`LeaseKind.computation`).
    struct LeaseRequest: Sendable {
        let kind: Index.LeaseKind
        let subject: [UInt8]
        /// Only entries of this application version; nil: of any.
        let version: UInt16?
        /// Nil: until it is ended.
        let duration: Duration?
        /// True if a caller holds it, and ends it: it has a row of its own.
        var isHeld = true
    }

    /// What a change came to.
    enum Outcome {
        /// The entry has this content now, of this length in bytes.
        case stored(Digest, length: UInt64)
        /// Number of entries removed.
        case removed(Int)
        case leased(row: [UInt8])
        case over(WriteResult)

        var result: WriteResult {
            switch self {
            case .stored(let digest, _): .stored(digest)
            case .removed(let count): count == 0 ? .absent : .done
            case .leased: .done
            case .over(let result): result
            }
        }
    }
}

extension Change {
    /// The key that it reads or changes; nil for those that concern none, or others.
    var key: Key? {
        switch self {
        case .put(let put, _): put.key
        case .remove(let removal, _): removal.key
        case .alter(let alteration): alteration.key
        case .partial(let change): change.work.key
        case .removeContent, .lease, .endLease, .over: nil
        }
    }

    /// The put or the removal whose outcome a caller may have to hear of.
    var pending: PendingChange? {
        switch self {
        case .put(let put, _): put
        case .remove(let removal, _): removal
        default: nil
        }
    }

    /// The file that becomes a body with it, and is not needed if it fails.
    var stagedFile: StagedFile? {
        switch self {
        case .put(let put, _): put.stagedFile
        case .partial(let change): change.stagedFile
        default: nil
        }
    }

    /// True if a file becomes a body with it whose name has to be on disk before, where it is durable.
    var namesFile: Bool {
        if case .partial(let change) = self, change.completes { return true }
        return stagedFile != nil
    }

    /// Bytes of memory that the pending set holds for it.
    var memory: Int {
        switch self {
        case .put(let put, _): put.memory
        case .remove(let removal, _): 256 + removal.key.bytes.count
        case .alter(let alteration): 128 + alteration.key.bytes.count + (alteration.fields.metadata?.count ?? 0)
        case .partial(let change): 128 + change.work.key.bytes.count
        case .removeContent, .lease, .endLease, .over: 128
        }
    }
}
