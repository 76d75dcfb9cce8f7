import LMDB
import SystemPackage

extension Check {
    /// I1 and I7: every body is there, has its length, takes the space recorded for it, and hashes to its digest.
    mutating func checkBodies(_ progress: (CheckProgress) throws -> Void) throws {
        let total = ByteCount(Int64(clamping: try engine.state().storedBytes))
        let memory = try GuardedMemory()
        var next: UInt64 = 0
        var isOver = false
        while !isOver {
            var files: [(UInt64, BlobRecord)] = []
            var damaged: [(UInt64, BlobRecord)] = []
            var bytes: Int64 = 0
            let index = engine.index
            // Short snapshots: a long one would keep pages from being reused for as long as all bodies take.
            try engine.readLong { transaction in
                try transaction.withCursor(index.blobs) { cursor in
                    var pair = try cursor.seek(next)
                    while let (key, value) = pair, bytes < 16 << 20, files.count < 256 {
                        let id: UInt64 = key.field(0)
                        next = id &+ 1
                        if let head = BlobRecord(value), !head.isDamaged {
                            if head.location == .file {
                                files.append((id, head))
                            } else if readsBodies {
                                // An unreadable sector is a damaged body, and not the end of the process.
                                if try !head.matches(inline: BlobRecord.inlineBytes(value), by: memory) {
                                    damaged.append((id, head))
                                }
                                bytes += Int64(clamping: head.storedLength)
                            }
                        }
                        pair = try cursor.next()
                    }
                    isOver = pair == nil
                }
            }
            for (id, head) in damaged { try report(damaged: id, head, "its bytes in the index do not match") }
            for (id, head) in files { bytes += try checkFile(id, head) }
            report.hashedBytes = ByteCount(report.hashedBytes.bytes + (readsBodies ? bytes : 0))
            try progress(CheckProgress(hashedBytes: report.hashedBytes, totalBytes: total))
        }
        try checkMissing()
    }

    /// Returns the bytes read.
    private mutating func checkFile(_ id: UInt64, _ head: BlobRecord) throws -> Int64 {
        guard let file = try openFile(id, head) else { return 0 }
        let status = try FileSystem.status(file, path: nil)
        if head.encoding == .partial { return try checkPartial(id, head, status) }
        if status.size != engine.files.fileLength(head) {
            try report(
                damaged: id, head, "its file has \(status.size) bytes instead of \(engine.files.fileLength(head))")
            return 0
        }
        // Before the allocated bytes: a file that lost some of its bytes takes less space, too, and a corrected record
        // would make the damage look like one.
        if readsBodies, try !engine.files.matches(file, head) {
            try report(damaged: id, head, "the bytes of its file do not match")
            return status.size
        }
        if status.allocated != head.allocated.asBytes { try checkDrift(id, head) }
        return readsBodies ? status.size : 0
    }

    /// A body in progress has no digest yet: its file has to be as long as its ranges say.
    private mutating func checkPartial(_ id: UInt64, _ head: BlobRecord, _ status: FileSystem.Status) throws -> Int64 {
        if status.size < engine.files.fileLength(head) {
            guard let now = try current(id), now.isSameFile(as: head), now.storedLength == head.storedLength else {
                return 0
            }
            violation(
                .I1, "the file of blob \(id), a body in progress, has \(status.size) bytes of \(head.storedLength)")
            if isRepairing {
                try engine.damage.drop(id, now, "its file is too short")
                needsRebuild = true
            }
            return 0
        }
        // What a power loss may have taken cannot be found out by reading it.
        if isRepairing, readsBodies, engine.damage.suspects.contains(head.epoch) {
            try engine.damage.drop(id, head, "the machine went down before its bytes were synced")
            return 0
        }
        if status.allocated != head.allocated.asBytes { try checkDrift(id, head) }
        return 0
    }

    /// The file of a body, also where an uncommitted removal has put it; nil if it is gone, or may be.
    ///
    /// A repair puts such a file back, and reports one that is lost. A check that only reads looks again later.
    private mutating func openFile(_ id: UInt64, _ head: BlobRecord) throws -> OwnedDescriptor? {
        do {
            if let file = try engine.files.openBlob(head) { return file }
        } catch {
            guard let fault = engine.files.fault(opening: head, error) else { throw error }
            try report(damaged: id, head, fault)
            return nil
        }
        guard isRepairing else {
            if let file = try engine.files.openDiscarded(head) { return file }
            missing.append((id, head))
            return nil
        }
        // A removal that fails and is tried again takes it away again.
        for _ in 0..<3 {
            try engine.damage.reportVanished(id, head)
            guard let now = try current(id) else { return nil }
            if now.isDamaged {
                needsRebuild = true
                violation(.I1, "the file of the body \(head.digest) is gone")
                return nil
            }
            guard now.isSameFile(as: head) else { return nil }
            if let file = try engine.files.openBlob(head) { return file }
        }
        isIncomplete = true
        return nil
    }

    private mutating func report(damaged id: UInt64, _ head: BlobRecord, _ what: String) throws {
        // If the body was displaced since, or its damage was already found elsewhere, it is no longer part of the
        // store.
        guard let now = try current(id), now.isSameFile(as: head) else { return }
        let isInProgress = head.encoding == .partial
        violation(
            .I7, "\(isInProgress ? "blob \(id), a body in progress," : "the body \(head.digest)") is damaged: \(what)")
        guard isRepairing else { return }
        if isInProgress { try engine.damage.drop(id, now, what) } else { try engine.damage.quarantine(id, now, what) }
        needsRebuild = true
    }

    /// Displacement renames a file out of `blobs/` inside its transaction. Until that commits, all others see the row
    /// without the file. A check that repairs looks under the writer lock; one that only reads has to wait: a row that
    /// stays for two seconds without its file is not being displaced.
    private mutating func checkMissing() throws {
        for attempt in 0...100 where !missing.isEmpty {
            if attempt > 0 { usleep(20_000) }
            let looked = missing
            missing = []
            // A file that is back is compared like any other; one that is not is missing again.
            for (id, head) in looked where try current(id)?.isSameFile(as: head) == true { _ = try checkFile(id, head) }
        }
        for (_, head) in missing { violation(.I1, "the file of the body \(head.digest) is gone") }
        missing = []
    }

    /// Checks a file that takes a different number of bytes from what it is charged with. This is not a violation
    /// before a checkpoint has synced the file, or where the file system never reports a final figure. In those cases
    /// the difference is counted, and the sum of all is compared.
    private mutating func checkDrift(_ id: UInt64, _ head: BlobRecord) throws {
        let engine = engine
        guard try current(id) == head, let status = try engine.files.blobStatus(head) else { return }
        guard status.allocated != head.allocated.asBytes else { return }
        let settled = Allocation.settled(status, of: head, in: engine.files)
        if try settled == head.allocated.asBytes || isUnsettled(head) {
            let difference = head.allocated.asBytes - status.allocated
            if difference > 0 { overcharged += difference } else { undercharged -= difference }
            return
        }
        violation(
            .I8, "the file of \(head.digest) takes \(status.allocated) bytes on disk, \(head.allocated) are recorded")
        guard isRepairing else { return }
        try engine.mutate(.housekeeping) { mutation in
            guard try engine.index.blob(id, mutation.reading) == head else { return }
            try mutation.blobs.charge(NumberedBlob(id: id, head: head), settled)
        }
    }

    /// True if no checkpoint has seen the file.
    private func isUnsettled(_ head: BlobRecord) throws -> Bool {
        try engine.read { try $0.get(engine.index.unpublished, head.token.indexKey) != nil }
    }

    private func current(_ id: UInt64) throws -> BlobRecord? {
        try engine.read { try engine.index.blob(id, $0) }
    }

    /// I6: no file in `blobs/` without a record.
    mutating func checkOrphans() throws {
        for directory in try engine.files.shards() {
            for name in try directory.names(of: .shard) where try !isUsed(name) {
                // Displaced between the two looks, it would be gone by now.
                guard let status = try FileSystem.status(name, in: directory), status.isRegular, try !isUsed(name)
                else { continue }
                violation(.I6, "the file \(directory.path(of: name)) belongs to no body")
                if isRepairing { try engine.writing?.orphans.remove([name], in: directory) }
            }
        }
    }

    private func isUsed(_ name: String) throws -> Bool {
        try engine.read { try engine.index.hasBlobFile(engine.files.digest(ofFile: name), $0) }
    }

    /// I8: what is reported equals what the directory takes, but for files of which the file system has not said for
    /// good.
    ///
    /// Others write meanwhile: the two figures are of one moment only if the report is the same before and after the
    /// recount, and even then a displacement may have moved a file and not committed yet. A lasting error shows the
    /// same difference each time: if forty looks find it, it is a violation.
    mutating func checkAllocation() throws {
        var seen: [Int64: Int] = [:]
        for attempt in 0..<100 {
            if attempt > 0 { usleep(20_000) }
            let before = try engine.statistics().allocatedBytes.bytes
            let census = try DirectoryCensus(engine.files.root)
            let recounted = census.allocated
            report.foreignFiles = Array(census.foreign.sorted().prefix(CheckReport.violationLimit))
            let after = try engine.statistics().allocatedBytes.bytes
            let (low, high) = (min(before, after) - overcharged, max(before, after) + undercharged)
            if (low...high).contains(recounted) { return }
            guard before == after else { continue }
            seen[after - recounted, default: 0] += 1
            guard seen[after - recounted] == 40 else { continue }
            violation(.I8, "\(after) bytes are reported, the files of the directory take \(recounted)")
            if isRepairing { needsRebuild = true }
            return
        }
    }
}
