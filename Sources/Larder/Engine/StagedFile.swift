/// A body file that is being written, or is written and waits for its commit, in `staging/`.
struct StagedFile: Sendable {
    let token: StagingToken
    let descriptor: OwnedDescriptor
    var length: Int64 = 0
    /// `st_blocks` x 512, once written.
    var allocated: Int64 = 0
    /// Bytes held for it in the ledger.
    var reserved: Int64 = 0
    /// True if blocks were allocated ahead of writing, perhaps more than were written.
    var isPreallocated = false
}
