import LMDB

/// Free pages of the index: how many there are, and giving them back to the file system. Without state of its own.
final class IndexSpace: EnginePart {
    let context: EngineContext
    private let snapshots: HeldSnapshots
    private let reserve: IndexReserve

    /// Pages in a row that are worth a hole.
    static let longRun = 4
    /// Bytes that are given back at once.
    private static let mostAtOnce: Int64 = 32 << 20

    init(context: EngineContext, snapshots: HeldSnapshots, reserve: IndexReserve) {
        self.context = context
        self.snapshots = snapshots
        self.reserve = reserve
    }

    /// Bytes of free pages in the index file that are still on disk.
    func free() throws -> Int64 { max(0, try context.freeIndexBytes() - reserve.bytes) }

    /// Gives at least `bytes` of free pages back to the file system where there are that many: long runs first.
    /// - Parameter leastRun: shorter runs stay.
    func giveBack(_ bytes: Int64, leastRun: Int = 1) throws -> Int64 {
        var given: Int64 = 0
        for minimumRun in [Self.longRun, 1] where minimumRun >= leastRun {
            while given < bytes {
                let wanted = min(bytes - given, Self.mostAtOnce)
                let step = try punch(upTo: wanted, minimumRun: minimumRun)
                given += max(0, step)
                if step < wanted { break }
            }
        }
        return given
    }

    /// Takes the reserve, of pages that were given back just now. Where the file system has room again, gives it back:
    /// a process that ended may have left it there.
    func settleReserve() throws {
        try reserve.look(context.budget())
        if reserve.wantedBytes > 0 {
            try? reserve.require()
            return
        }
        do throws(LMDBError) {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            reserve.release()
        } catch {
            throw translate(error)
        }
    }

    /// Gives free pages of the index back to the file system: at least `bytes` where there are that many, longest runs
    /// first. Returns the bytes by which the file shrank. Holds the writer lock for at most about `mostAtOnce`.
    @discardableResult
    func punch(upTo bytes: Int64, minimumRun: Int) throws -> Int64 {
        do {
            return try punchHoles(upTo: bytes, minimumRun: minimumRun)
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    private func punchHoles(upTo bytes: Int64, minimumRun: Int) throws -> Int64 {
        let environment = index.environment
        let path = files.index.path(of: Layout.data)
        let target = min(bytes, Self.mostAtOnce, try free())
        if target <= 0 { return 0 }
        let transaction = try environment.beginWrite()
        defer { transaction.abort() }
        let descriptor = environment.dataDescriptor
        let pageSize = Int64(environment.pageSize)
        // Pages freed by a commit that power loss may still undo must keep their bytes (docs/recovery.md).
        try environment.sync()
        let before = try FileSystem.status(raw: descriptor, path: path).allocated
        let runs = try environment.reclaimablePages(holding: transaction, minimumRun: minimumRun) {
            snapshots.lastPage(of: $0)
        }
        .sorted { $0.count > $1.count }
        var freed: Int64 = 0
        // Punched since the last look. Pages that were given back earlier are free, too, so it may be less.
        var punched: Int64 = 0
        // Twice as long after each look that found nothing new.
        var least: Int64 = 64 << 10
        reach("punch.before")
        for (number, run) in runs.enumerated() {
            var length = Int64(run.count) * pageSize
            var offset = Int64(run.firstPage) * pageSize
            // LMDB sets the position before it writes, which it does not while this holds its lock.
            if !FileSystem.hasData(rawDescriptor: descriptor, offset: offset, length: length) { continue }
            while length > 0, freed < target {
                let wanted = max(least, target - freed - punched)
                let piece = min(length, (wanted + pageSize - 1) / pageSize * pageSize)
                guard try FileSystem.punchHole(rawDescriptor: descriptor, offset: offset, length: piece, path: path)
                else { return 0 }
                reach("punch.after")
                punched += piece
                offset += piece
                length -= piece
                if freed + punched >= target || number % 16 == 15 {
                    let now = before - (try FileSystem.status(raw: descriptor, path: path).allocated)
                    if now <= freed { least = min(2 * least, 32 << 20) }
                    freed = now
                    punched = 0
                }
            }
            if freed >= target { break }
        }
        return before - (try FileSystem.status(raw: descriptor, path: path).allocated)
    }
}

extension EngineContext {
    /// Bytes of free pages in the index file that are still on disk.
    func freeIndexBytes() throws -> Int64 {
        try read { transaction in
            let environment = index.environment
            let live = try environment.usedPages(in: transaction, databases: index.databases)
            let status = try FileSystem.status(raw: environment.dataDescriptor, path: nil)
            return max(0, status.allocated - Int64(live * environment.pageSize))
        }
    }
}
