import LMDB
import SystemPackage

extension Engine {
    /// A body that does not match its name goes to `quarantine/`, and its entries become misses. Read-only engines only
    /// report. Safe against the same finding by another thread or process: the record is looked at again under the
    /// lock.
    func quarantine(_ blob: UInt64, _ head: BlobRecord, _ reason: String) throws {
        configuration.observer?(.damaged(digest: head.digest, reason: reason))
        logger.error("damaged body", metadata: ["digest": "\(head.digest)", "reason": "\(reason)"])
        guard let writing else { return }
        defer { boundQuarantine(writing) }
        try mutate(.housekeeping) { mutation in
            guard let bytes = try mutation.reading.get(index.blobs, blob), let current = BlobRecord(bytes),
                current.isSameFile(as: head)
            else { return }
            let name = head.digest.hexadecimal
            // An earlier finding of the same body may lie there. What a trim by another process removes, that one takes
            // off. If this runs again because there was no room, the file there is the one that the previous run moved.
            let earlier = try FileSystem.status(name, in: files.quarantine)?.allocated ?? 0
            let isMoved = try current.location == .file && files.blobStatus(current) == nil
            if !isMoved, try FileSystem.unlink(name, in: files.quarantine) { writing.ledger.addQuarantine(-earlier) }
            switch current.location {
            case .file:
                if try !FileSystem.rename(Layout.blob(current.digest), in: files.blobs, to: name, in: files.quarantine)
                {
                    try FileSystem.rename(current.token.name, in: files.staging, to: name, in: files.quarantine)
                }
            case .inline:
                let path = files.quarantine.path(of: name)
                let file = try FileSystem.open(name, in: files.quarantine, flags: O_WRONLY | O_CREAT | O_TRUNC)
                try keep(BlobRecord.inlineBytes(bytes), in: file, path)
            }
            reach("quarantine.moved")
            if !isMoved {
                writing.ledger.addQuarantine(try FileSystem.status(name, in: files.quarantine)?.allocated ?? 0)
            }
            try mutation.markDamaged(blob)
        }
    }

    /// Writes the bytes of a damaged body as far as they can be read: a sector of the index may be what is damaged.
    private func keep(_ bytes: UnsafeRawBufferPointer, in file: OwnedDescriptor, _ path: FilePath) throws {
        let result = Result { () throws(LarderError) in try FileSystem.write(file, bytes, at: 0, path: path) }
        if case .failure(let error) = result, error.cause as? Errno != .badAddress { throw error }
    }

    /// As `quarantine` for an inline body, from inside a read: on the pool, as a write may wait.
    func quarantineLater(_ blob: UInt64, _ head: BlobRecord, _ reason: String) {
        Task { [self] in
            try? await IOPool.shared.run { try self.quarantine(blob, head, reason) }
        }
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
        guard let writing else { return }
        // A process that died while removing it may have left it in `trash/`, to be put back.
        try sweepDead(writing)
        let isGone = try mutate(.housekeeping) { mutation -> Bool in
            guard let current = try mutation.reading.get(index.blobs, blob).flatMap(BlobRecord.init),
                current.isSameFile(as: head), try isLost(current)
            else { return false }
            try mutation.markDamaged(blob)
            return true
        }
        if isGone {
            configuration.observer?(.damaged(digest: head.digest, reason: "the file is gone"))
            logger.error("body file vanished", metadata: ["digest": "\(head.digest)"])
        }
    }
}
