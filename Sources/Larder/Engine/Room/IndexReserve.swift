import LMDB
import Locks

/// Blocks of the index file beyond its end, which a removal can rely on where the file system is full.
///
/// A removal writes pages of the index before it frees any. New pages lie beyond the end of the file, so the reserve is
/// where they are written. Free pages that were given back to the file system need blocks again: for these the reserve
/// is given back just before the commit. What stores something leaves a whole reserve, or is refused as on a full disk.
///
/// It is taken only while the file system has little room left. Safe from any thread: `release` is called by the thread
/// that holds LMDB's lock of writers, and the rest is atomic.
final class IndexReserve: Sendable {
    private let files: StoreFiles
    private let index: Index
    private let uptime = SystemClock()
    /// What the reserve is to be: 0 while the file system has room.
    private let wanted = Atomic<Int64>(0)
    /// What this process has taken, and not given back.
    private let taken = Atomic<Int64>(0)
    /// Bytes stored since the last look at the file system, and when that was.
    private let stored = Atomic<Int64>(0)
    private let looked = Atomic<UInt64>(0)

    /// The reserve on a large file system: a removal copies 20 pages at worst, and its next commit again.
    private static let size: Int64 = 512 << 10
    /// That of a small index.
    private static let least: Int64 = 64 << 10
    /// Which share of a small one it may be, and of a budget.
    private static let share: Int64 = 32
    /// Bytes free below which there is a reserve.
    static let scarce: Int64 = 64 << 20
    /// How much is stored between two looks, and how much time passes.
    private static let step: Int64 = 4 << 20
    private static let interval: UInt64 = 1_000_000_000
    /// Pages that a commit appends for the list of free pages.
    private static let listPages = 24

    init(files: StoreFiles, index: Index) {
        self.files = files
        self.index = index
    }

    /// Bytes beyond the end of the index file that belong to the reserve.
    var bytes: Int64 { taken.load(ordering: .relaxed) }

    /// Bytes that it lacks.
    var missing: Int64 { max(0, wantedBytes - bytes) }

    /// What it is to be, in bytes: 0 unless the file system has little room.
    var wantedBytes: Int64 { wanted.load(ordering: .relaxed) }

    /// Tests how much room the file system has.
    /// - Parameter isFull: it has just been found to have none.
    func look(_ budget: Budget, isFull: Bool = false) throws {
        stored.store(0, ordering: .relaxed)
        looked.store(uptime.uptime(), ordering: .relaxed)
        let space = try FileSystem.space(files.index)
        let isScarce = isFull || space.free < Self.scarce
        let most = min(space.total, budget.bytes.bytes) / Self.share
        // A small index has few pages to copy; and what the reserve lacks is displaced for.
        let file = Int64((index.environment.lastPage + 1) * index.environment.pageSize)
        let size = min(Self.size, max(Self.least, file / 4))
        wanted.store(isScarce ? min(size, most) : 0, ordering: .relaxed)
    }

    /// Makes the reserve whole, as it has to be after the commit of `mutation`, which stores something. Throws
    /// `noSpace` if the file system has too little room.
    func keep(beside mutation: Mutation) throws {
        let writtenBytes = Int64(try mutation.writtenPages() * index.environment.pageSize) + mutation.blobs.stagedBytes
        let before = stored.wrappingAdd(writtenBytes, ordering: .relaxed).oldValue
        if before + writtenBytes > Self.step || uptime.uptime() &- looked.load(ordering: .relaxed) > Self.interval {
            try look(mutation.state.budget)
        }
        if wanted.load(ordering: .relaxed) > 0 {
            let pages = try mutation.transaction.appendedPages ?? mutation.writtenPages()
            try take(beyond: pages + Self.listPages)
        } else if bytes > 0 {
            release()
        }
    }

    /// Allocates the pages by which the commit of `mutation` makes the index grow, where the file system would allocate
    /// as many again as the index has: room that the budget does not have.
    func allocateGrowth(of mutation: Mutation) {
        guard files.speculates, let pages = mutation.transaction.appendedPages, pages > 0 else { return }
        // What fails here fails in the commit, which tells why.
        _ = try? allocate(pages: pages + Self.listPages)
    }

    /// Makes the reserve whole. Throws `noSpace` if the file system has too little room.
    func require() throws { try take() }

    /// - Parameter pages: what the next commit appends, beyond which the reserve lies.
    private func take(beyond pages: Int = 0) throws {
        let wanted = wantedBytes
        if wanted == 0 { return }
        // Another process may have given back what this one took.
        taken.store(0, ordering: .relaxed)
        do {
            try take(wanted, beyond: pages)
        } catch {
            // A part is better than nothing: as much as there is.
            var part = wanted / 2
            while part >= Int64(index.environment.pageSize) {
                try? take(bytes + part, beyond: 0)
                part /= 2
            }
            throw error
        }
    }

    private func take(_ bytes: Int64, beyond pages: Int) throws {
        if try allocate(pages: pages, and: bytes) { taken.store(bytes, ordering: .relaxed) }
    }

    /// Allocates blocks from the end of the index on: pages, then some bytes. False where the file system cannot.
    @discardableResult
    private func allocate(pages: Int, and bytes: Int64 = 0) throws -> Bool {
        let environment = index.environment
        let pageSize = Int64(environment.pageSize)
        let start = Int64(environment.lastPage + 1) * pageSize
        return try environment.withDataDescriptor { descriptor in
            try FileSystem.preallocate(
                raw: descriptor, offset: start, length: Int64(pages) * pageSize + bytes,
                path: files.index.path(of: Layout.data))
        }
    }

    /// Gives the reserve back to the file system, whichever process has taken it. For the holder of the lock of
    /// writers, as LMDB must not write beyond the end of the file meanwhile.
    func release() {
        taken.store(0, ordering: .relaxed)
        // ftruncate(2) to the length that the file has frees what lies beyond.
        try? index.environment.withDataDescriptor { descriptor in
            let length = try FileSystem.status(raw: descriptor, path: nil).size
            try FileSystem.truncate(raw: descriptor, to: length, path: nil)
        }
    }
}
