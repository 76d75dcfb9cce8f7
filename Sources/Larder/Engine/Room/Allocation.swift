import CLarder
import LMDB

/// What a body file is charged with: the bytes that the budget and the statistics take it to occupy.
///
/// A file system may not know at once what a file takes. ext4 and XFS add a block for the list of a file's extents when
/// they write it back, and drop it again; btrfs finds out then how well it could compress; ZFS tells next to nothing
/// until its transaction group is written, and never more than what is left after compression. So a file that was just
/// written is charged with the larger of what the file system says and its length in whole blocks, and with what the
/// file system says once a checkpoint has synced it, where that is final. See `docs/architecture.md`, "How the budget
/// holds at every moment".
enum Allocation {
    /// The charge of a file just written, or on a file system whose word is never final.
    static func charge(_ status: FileSystem.Status) -> Int64 { max(status.allocated, length(status)) }

    /// The length in whole blocks.
    static func length(_ status: FileSystem.Status) -> Int64 {
        (status.size + status.blockBytes - 1) / status.blockBytes * status.blockBytes
    }

    /// The charge of a file that has been synced.
    static func settled(_ status: FileSystem.Status, in files: StoreFiles) -> Int64 {
        files.hasFinalBlocks ? status.allocated : charge(status)
    }
}

extension Engine {
    /// The committed files among `rows` of `unpublished` that take other bytes than they are charged with. Call it
    /// after a sync of these files, without the writer lock.
    func drifted(_ heads: [BlobRecord]) throws -> [StagingToken: UInt64] {
        var found: [StagingToken: UInt64] = [:]
        for head in heads {
            guard let status = try files.blobStatus(head) else { continue }
            let settled = UInt64(max(0, Allocation.settled(status, in: files)))
            if settled != head.allocated { found[head.token] = settled }
        }
        return found
    }

    /// Charges files with what `drifted` found. Call it while their rows of `unpublished` are there.
    func settle(_ drifted: [StagingToken: UInt64], _ mutation: Mutation) throws {
        for (token, allocated) in drifted {
            guard let row = try mutation.reading.get(index.unpublished, token.indexKey), row.count == 8 else {
                continue
            }
            let id = UInt64(bigEndian: row.loadUnaligned(as: UInt64.self))
            guard let head = try mutation.reading.get(index.blobs, id).flatMap(BlobRecord.init), head.token == token,
                head.location == .file, !head.isDamaged
            else { continue }
            var settled = head
            settled.allocated = allocated
            try mutation.rewrite(id, head, settled)
        }
    }
}
