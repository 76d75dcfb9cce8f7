import LMDB
import Locks

/// Bodies that are damaged or lost, and those that may be. Safe from any thread.
final class Damage: EnginePart {
    let context: EngineContext
    /// Epochs whose body files may have lost bytes to a power loss; see `Verification`.
    let suspects: Range<UInt64>
    /// Blobs of those epochs whose files were compared with their digests, and match.
    private let verified = EngineMutex<Set<UInt64>>([])
    /// Bodies that this store has found damaged or lost since it was opened.
    let count = Atomic<Int>(0)
    /// Nil in a read-only engine, which only reports.
    private let changes: Changes?

    /// What it takes to note damage in the store.
    struct Changes: Sendable {
        let transactions: Transactions
        let recovery: Recovery
        let quarantine: Quarantine
    }

    init(context: EngineContext, suspects: Range<UInt64>, changes: Changes?) {
        self.context = context
        self.suspects = suspects
        self.changes = changes
    }

    /// True if damage is reported only.
    var isReadOnly: Bool { changes == nil }

    // MARK: Suspects

    /// True if the bytes of a body file are to be compared with its digest before they are returned.
    @inline(__always)
    func isDue(_ head: BlobRecord, _ blob: UInt64) -> Bool {
        switch context.configuration.verification {
        case .never: false
        case .always: true
        case .afterUncleanShutdown: suspects.contains(head.epoch) && !isVerified(blob)
        }
    }

    /// The file of a blob was compared with its digest, and matches.
    func noteVerified(_ blob: UInt64) { verified.withLock { _ = $0.insert(blob) } }

    /// True if that was done in this process.
    func isVerified(_ blob: UInt64) -> Bool { verified.withLock { $0.contains(blob) } }

    /// Blobs of which that is true.
    var verifiedCount: Int { verified.withLock { $0.count } }

    // MARK: Findings

    /// A body that does not match its name goes to `quarantine/`, and its entries become misses. Read-only engines only
    /// report. Safe against the same finding by another thread or process: the record is looked at again under the
    /// lock.
    func quarantine(_ blob: UInt64, _ head: BlobRecord, _ reason: String) throws {
        note(head.digest, reason)
        logger(.integrity).error("damaged body", metadata: ["digest": "\(head.digest)", "reason": "\(reason)"])
        guard let changes else { return }
        defer { changes.quarantine.bound() }
        try changes.transactions.housekeep { mutation in
            guard let bytes = try mutation.reading.get(index.blobs, blob), let current = BlobRecord(bytes),
                current.isSameFile(as: head)
            else { return }
            try changes.quarantine.take(current, bytes)
            try mutation.blobs.markDamaged(blob)
        }
    }

    private func note(_ digest: Digest, _ reason: String) {
        count.wrappingAdd(1, ordering: .relaxed)
        counters.add(.damagedBodies)
        configuration.observer?(.damaged(digest: digest, reason: reason))
    }

    /// Reports an entry whose body is part of its record and not what was put; the caller treats the entry as a miss.
    /// It has no blob to be marked, so each operation that works out its digest reports it.
    /// - Parameter digest: of the bytes that are there.
    func reportEmbedded(under key: Key, found digest: Digest) {
        note(digest, "the bytes in the entry under \(key) are not those that were put")
        logger(.integrity).error("damaged entry", metadata: ["key": "\(key)"])
    }

    /// Removes a body in progress whose bytes are lost, or may be: there is no digest to compare them with. The entry
    /// is a miss as before, and its writer starts again. Read-only engines do nothing.
    func drop(_ blob: UInt64, _ head: BlobRecord, _ reason: String) throws {
        guard let changes else { return }
        let isDropped = try changes.transactions.housekeep { mutation -> Bool in
            guard let current = try mutation.blobs.record(blob), current.isSameFile(as: head),
                current.encoding == .partial
            else { return false }
            try mutation.blobs.drop(blob, current)
            return true
        }
        guard isDropped else { return }
        logger(.integrity).notice("dropped a body in progress", metadata: ["reason": "\(reason)", "blob": "\(blob)"])
    }

    /// As `quarantine` for an inline body, from inside a read: on the pool, as a write may wait.
    func quarantineLater(_ blob: UInt64, _ head: BlobRecord, _ reason: String) {
        IOPool.shared.submit { try? self.quarantine(blob, head, reason) }
    }

    /// True if the file of a blob is nowhere. Call it under the writer lock while the index has the blob: then a file
    /// of it in `trash/` belongs to a removal that was not committed, and goes back. Whose that was may still look
    /// alive: a process that is killed loses LMDB's lock before that on its instance.
    func isLost(_ head: BlobRecord) throws -> Bool {
        if try files.blobStatus(head) != nil { return false }
        if let name = try files.discardedName(head) { try files.restore(head, from: name) }
        return try files.blobStatus(head) == nil
    }

    /// Reports a body file that was removed from outside and is lost. Its entries become misses.
    func reportVanished(_ blob: UInt64, _ head: BlobRecord) throws {
        guard let changes else { return }
        // A process that died while removing it may have left it in `trash/`, to be put back.
        try changes.recovery.sweepDead()
        let isGone = try changes.transactions.housekeep { mutation -> Bool in
            guard let current = try index.blob(blob, mutation.reading),
                current.isSameFile(as: head), try isLost(current)
            else { return false }
            try mutation.blobs.markDamaged(blob)
            return true
        }
        if isGone {
            note(head.digest, "the file is gone")
            logger(.integrity).error("body file vanished", metadata: ["digest": "\(head.digest)"])
        }
    }
}

extension Digest {
    /// SHA-256 of a file of exactly `length` bytes; nil if it has another length.
    /// - Parameter pause: called between pieces of 256 KiB; what it throws is passed on.
    static func of(
        _ file: OwnedDescriptor, length: UInt64, pause: () throws -> Void = {}
    ) throws -> Digest? {
        guard try FileSystem.status(file, path: nil).size == Int64(clamping: length) else { return nil }
        var hash = IncrementalDigest()
        var buffer = [UInt8](repeating: 0, count: Int(min(length, 256 << 10)))
        var offset: Int64 = 0
        while offset < Int64(clamping: length) {
            let count = try buffer.withUnsafeMutableBytes {
                try FileSystem.read(file, into: $0, at: offset, path: nil)
            }
            if count == 0 { return nil }
            try pause()
            buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += Int64(count)
        }
        return hash.finalize()
    }
}
