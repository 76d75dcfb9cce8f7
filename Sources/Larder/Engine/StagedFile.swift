/// A body file that is being written, or is written and waits for its commit, in `staging/`.
struct StagedFile: Sendable {
    let token: StagingToken
    let descriptor: OwnedDescriptor
    var length: Int64 = 0
    /// What it is charged with, once written; see `Allocation`.
    var allocated: Int64 = 0
    /// Bytes held for it in the ledger.
    var reserved: Int64 = 0
    /// True if this process made the file: no one else uses blocks beyond its end.
    var isOwn = false
}
