import LMDB
import SystemPackage

/// How much of the budget is taken, exactly enough never to go over it.
///
/// Taken are: the index file as it is on disk, its lock file, the small files beside it, body files (counted in the
/// index) and whatever the ledger holds. All of it is O(1).
struct Room: Sendable {
    let files: StoreFiles
    let index: Index
    let ledger: Ledger
    let reserve: IndexReserve
    private let pageSize: Int64
    /// `FORMAT`, `CACHEDIR.TAG`, the ledger, the counters, and `lock.mdb` at its full length, where the file system
    /// could not allocate it ahead.
    private let fixed: Int64

    init(files: StoreFiles, index: Index, ledger: Ledger) throws(LarderError) {
        self.files = files
        self.index = index
        self.ledger = ledger
        reserve = IndexReserve(files: files, index: index)
        pageSize = Int64(index.environment.pageSize)
        var fixed = try files.smallFilesAllocated()
        let lock = try FileSystem.status(Layout.lock, in: files.index)
        fixed += max(lock?.allocated ?? 0, ((lock?.size ?? 0) + 4095) / 4096 * 4096)
        self.fixed = fixed
    }

    /// Bytes of `data.mdb` on disk.
    func dataAllocated() throws -> Int64 {
        do {
            return try index.environment.withDataDescriptor { descriptor in
                try FileSystem.status(raw: descriptor, path: files.index.path(of: Layout.data)).allocated
            }
        } catch let error as LMDBError {
            throw LarderError(
                .closed, "the store at \(files.root.path) was closed", path: files.root.path, cause: error)
        }
    }

    /// Everything the store takes or is about to take, given the counters.
    func claimed(_ state: StoreState) throws -> Int64 {
        try fixed + dataAllocated() + ledger.total + state.fileAllocated.asBytes
    }

    /// What a transaction needs beyond a limit.
    struct Lack {
        var bytes: Int64
        /// True if the index would grow, by new pages or by holes that are filled: with more free pages it might not.
        var isGrowth = true
    }

    /// By how much the commit of `mutation` would go over `cap`, or under the free-disk floor; nil if it fits.
    ///
    /// The index grows by the pages the transaction appended, by holes it fills, and by the pages the commit needs for
    /// the list of free pages: one for every 500 pages freed, and some for the paths it copies.
    /// - Parameter reusable: how many free pages the transaction may use; nil: any.
    func lack(of mutation: Mutation, cap: Int64, reusable: Int? = nil) throws -> Lack? {
        let budget = mutation.state.budget
        if cap == .max, budget.freeDiskFloor == .zero { return nil }
        let environment = index.environment
        let data = try dataAllocated()
        let listed = Int64(mutation.freedPages / 256 + 24)
        let written = Int64(try mutation.writtenPages()) + listed
        let committed = Int64(environment.lastPage + 1)
        let holes = min(max(0, committed - (data - reserve.bytes) / pageSize), reusable.map(Int64.init) ?? .max)
        let appended = mutation.transaction.appendedPages.map { Int64($0) + listed }
        let growth = ((appended ?? written) + min(holes, written)) * pageSize
        let dead = mutation.blobs.deadFiles.reduce(Int64(0)) { $0 + $1.allocated.asBytes }
        let files = mutation.state.fileAllocated.asBytes + dead - mutation.blobs.stagedBytes
        let projected = fixed + data + growth + ledger.total + files
        var excess = cap == .max ? 0 : max(0, projected - cap)
        if budget.freeDiskFloor > .zero {
            let free = try FileSystem.freeBytes(self.files.root)
            excess = max(excess, budget.freeDiskFloor.bytes - (free - growth))
        }
        if excess == 0 { return nil }
        return Lack(bytes: excess, isGrowth: appended != listed || holes > 0)
    }

    /// By how much `bytes` more would go over what puts may fill, or under the free-disk floor; 0 if they fit.
    /// - Parameter usable: what puts may fill; nil: the budget less its headroom.
    func excess(adding bytes: Int64, _ state: StoreState, usable: Int64? = nil) throws -> Int64 {
        var excess: Int64 = 0
        if state.budget.bytes != .unlimited {
            excess = max(0, try claimed(state) + bytes - (usable ?? state.budget.usableBytes))
        }
        if state.budget.freeDiskFloor > .zero {
            excess = max(excess, state.budget.freeDiskFloor.bytes - (try FileSystem.freeBytes(files.root) - bytes))
        }
        return excess
    }
}
