/// What keeps `quarantine/` from growing: bytes that no one looks at must not take budget from entries without end.
extension Engine {
    /// Files that stay.
    private static let quarantineCount = 256

    /// Bytes that stay: a 32nd of the byte budget, at most 256 MiB.
    private func quarantineLimit() throws -> Int64 { try min(budget().bytes.bytes / 32, 256 << 20) }

    /// Removes the files that have been in quarantine for the longest until what is left keeps the limits. A failure
    /// keeps nothing else from being done: `gc` tries again.
    func boundQuarantine(_ writing: Writing) {
        do {
            try trimQuarantine(to: quarantineLimit(), writing)
        } catch {
            logger.warning("quarantine/ could not be trimmed", metadata: ["error": "\(error)"])
        }
    }

    /// As `boundQuarantine`, but counts the files there again: an operator may have removed files.
    func tidyQuarantine(_ writing: Writing) throws {
        let counted = writing.ledger.quarantine
        let sum = try files.allocated(in: files.quarantine)
        // Another process may have moved a file there meanwhile; then the next one counts.
        writing.ledger.correctQuarantine(from: counted, to: sum)
        try trimQuarantine(to: quarantineLimit(), writing)
    }

    /// Removes files, oldest first, until at most `bytes` of them are left; returns the bytes removed. Call it without
    /// the writer lock.
    @discardableResult
    func trimQuarantine(to bytes: Int64, _ writing: Writing) throws -> Int64 {
        let names = try files.quarantine.names()
        if writing.ledger.quarantine <= bytes, names.count <= Self.quarantineCount { return 0 }
        // A rename changes the time of the last change of status, so that is when a file came here.
        var found: [(name: String, status: FileSystem.Status)] = []
        for name in names {
            if let status = try FileSystem.status(name, in: files.quarantine), !status.isDirectory {
                found.append((name, status))
            }
        }
        found.sort { $0.status.changedNanoseconds < $1.status.changedNanoseconds }
        var left = found.reduce(Int64(0)) { $0 + $1.status.allocated }
        var count = found.count
        var removed: Int64 = 0
        for (name, status) in found where left > bytes || count > Self.quarantineCount {
            left -= status.allocated
            count -= 1
            // Another process may have removed it, which has taken it off then, or put another file in its place.
            guard let now = try FileSystem.status(name, in: files.quarantine),
                now.inode == status.inode, try FileSystem.unlink(name, in: files.quarantine)
            else { continue }
            writing.ledger.addQuarantine(-now.allocated)
            removed += now.allocated
        }
        if removed > 0 { logger.info("removed the oldest files of quarantine/", metadata: ["bytes": "\(removed)"]) }
        return removed
    }
}
