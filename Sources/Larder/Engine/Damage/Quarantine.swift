import SystemPackage

/// `quarantine/`: bodies that do not match their digest come here, and the oldest are removed, as bytes that no one
/// looks at must not take budget from entries without end. Its state is the directory and a word of the ledger.
final class Quarantine: EnginePart {
    let context: EngineContext
    private let ledger: Ledger

    init(context: EngineContext, ledger: Ledger) {
        self.context = context
        self.ledger = ledger
    }

    /// Moves the file of a damaged body here, or writes its bytes where they are in the index and not encrypted. Call
    /// it in a write transaction, which may run again: then the file here is the one that the previous run moved.
    /// - Parameter value: the blob's record and bytes.
    func take(_ head: BlobRecord, _ value: UnsafeRawBufferPointer) throws {
        let name = files.name(of: head.digest).hexadecimal
        // An earlier finding of the same body may lie there. What a trim by another process removes, that one takes
        // off.
        let quarantine = try files.quarantine
        let earlier = try FileSystem.status(name, in: quarantine)?.allocated ?? 0
        let isMoved = try head.location == .file && files.blobStatus(head) == nil
        if !isMoved, try FileSystem.unlink(name, in: quarantine) { QuarantineBytes(ledger).add(-earlier) }
        switch head.location {
        case .file:
            if try !FileSystem.rename(
                Layout.blob(files.name(of: head.digest)), in: files.blobs, to: name, in: quarantine)
            {
                try FileSystem.rename(head.token.name, in: files.staging, to: name, in: quarantine)
            }
        case .inline where files.cipher != nil:
            // What is there would be in the clear.
            return
        case .inline:
            let path = quarantine.path(of: name)
            let file = try FileSystem.open(name, in: quarantine, flags: O_WRONLY | O_CREAT | O_TRUNC)
            try keep(BlobRecord.inlineBytes(value), in: file, path)
        }
        reach("quarantine.moved")
        if !isMoved { QuarantineBytes(ledger).add(try FileSystem.status(name, in: quarantine)?.allocated ?? 0) }
    }

    /// Writes the bytes of a damaged body as far as they can be read: a sector of the index may be what is damaged.
    private func keep(_ bytes: UnsafeRawBufferPointer, in file: OwnedDescriptor, _ path: FilePath) throws {
        let result = Result { () throws(LarderError) in try FileSystem.write(file, bytes, at: 0, path: path) }
        if case .failure(let error) = result, error.cause as? Errno != .badAddress { throw error }
    }

    // MARK: Limits

    /// Files that stay.
    private static let countLimit = 256

    /// Bytes that stay: a 32nd of the byte budget, at most 256 MiB.
    private func limit() throws -> Int64 { try min(context.budget().bytes.bytes / 32, 256 << 20) }

    /// Removes the files that have been in quarantine for the longest until what is left keeps the limits. A failure
    /// keeps nothing else from being done: `gc` tries again.
    func bound() {
        do {
            try trim(to: limit())
        } catch {
            logger(.integrity).warning("quarantine/ could not be trimmed", metadata: ["error": "\(error)"])
        }
    }

    /// As `bound()`, but counts the files there again: an operator may have removed files.
    func tidy() throws {
        let counted = QuarantineBytes(ledger).count
        let sum = try files.allocated(in: files.quarantine, .quarantine)
        // Another process may have moved a file there meanwhile; then the next one counts.
        QuarantineBytes(ledger).correct(from: counted, to: sum)
        try trim(to: limit())
    }

    /// Removes files, oldest first, until at most `bytes` of them are left; returns the bytes removed. Call it without
    /// the writer lock.
    @discardableResult
    func trim(to bytes: Int64) throws -> Int64 {
        let quarantine = try files.quarantine
        let names = try quarantine.names(of: .quarantine)
        if QuarantineBytes(ledger).count <= bytes, names.count <= Self.countLimit { return 0 }
        // A rename changes the time of the last change of status, so that is when a file came here.
        var found: [(name: String, status: FileSystem.Status)] = []
        for name in names {
            if let status = try FileSystem.status(name, in: quarantine), !status.isDirectory {
                found.append((name, status))
            }
        }
        found.sort { $0.status.changedNanoseconds < $1.status.changedNanoseconds }
        var left = found.reduce(Int64(0)) { $0 + $1.status.allocated }
        var count = found.count
        var removed: Int64 = 0
        for (name, status) in found where left > bytes || count > Self.countLimit {
            left -= status.allocated
            count -= 1
            // Another process may have removed it, which has taken it off then, or put another file in its place.
            guard let now = try FileSystem.status(name, in: quarantine),
                now.inode == status.inode, try FileSystem.unlink(name, in: quarantine)
            else { continue }
            QuarantineBytes(ledger).add(-now.allocated)
            removed += now.allocated
        }
        if removed > 0 {
            logger(.integrity).info("removed the oldest files of quarantine/", metadata: ["bytes": "\(removed)"])
        }
        return removed
    }
}
