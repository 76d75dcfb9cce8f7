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

    /// The charge of the file of a body in progress, which has holes.
    static func charge(_ status: FileSystem.Status, _ ranges: StoredRanges) -> Int64 {
        max(status.allocated, ranges.bytes(inBlocksOf: max(1, status.blockBytes)))
    }

    /// The charge of a file that has been synced.
    static func settled(_ status: FileSystem.Status, of head: BlobRecord, in files: StoreFiles) -> Int64 {
        if files.hasFinalBlocks { return status.allocated }
        // Its length says little about a file with holes, of which its writer knows what they leave.
        return head.encoding == .partial ? max(status.allocated, head.allocated.asBytes) : charge(status)
    }
}
