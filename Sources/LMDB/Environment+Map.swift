import CLMDB
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The map of the file, which grows with it: `mdb_env_set_mapsize` "may be called later if no transactions are active
/// in this process" (lmdb.h).
extension Environment {
    /// Bytes of the map: the longest the file may become before the map has to grow.
    public func mapSize() throws(LMDBError) -> Int {
        try enter()
        defer { leave() }
        return Int(info.me_mapsize)
    }

    /// Calls `body` whenever the map has moved: addresses from earlier transactions are then invalid. No transaction of
    /// this process is under way at that moment. Call it before others see the environment.
    public func whenMapMoves(_ body: @escaping @Sendable () -> Void) { mapMoved = body }

    /// Bytes up to the last page. The number comes from the mapped head of the file, which may be damaged.
    private func usedBytes(_ info: MDB_envinfo) -> Int {
        let (bytes, isOverflow) = (Int(clamping: info.me_last_pgno) &+ 1)
            .multipliedReportingOverflow(by: pageSize)
        return isOverflow || bytes < 0 ? .max : bytes
    }

    /// Makes the map larger before the file can reach its end, unless that takes a wait of more than 0.2 s. The caller
    /// has entered.
    func growMap() {
        let info = info
        let size = Int(info.me_mapsize)
        let used = usedBytes(info)
        guard size < mapLimit, used > size / 2 else { return }
        // The closer to the end, the longer it may wait for transactions under way.
        let attempts = used > size / 4 * 3 ? 10 : 1
        for _ in 0..<attempts {
            // If this fails, the next transaction tries again; reaching the end of the map is a separate error.
            let isDone =
                (try? remap(to: min(mapLimit, size * 4), least: size, entered: 1, steps: attempts * 20)) ?? true
            if isDone { return }
        }
    }

    /// Makes the map as large as another process made the file. False if reads under way do not end within a second, or
    /// if the address space is not available. The caller has not entered.
    /// - Parameter attempt: how often this was tried for the same transaction.
    func followMap(_ attempt: Int) throws(LMDBError) -> Bool {
        guard attempt < 50 else { return false }
        try enter()
        let needed = usedBytes(info)
        leave()
        // No file is that long: its head is damaged.
        guard needed < Int.max / 8 else { return false }
        let wanted = max(needed + needed / 4, min(mapLimit, needed * 4))
        do throws(LMDBError) {
            if try !remap(to: wanted, least: needed - 1, entered: 0, steps: 200) { usleep(5000) }
            return true
        } catch {
            if error.isClosed { throw error }
            return false
        }
    }

    /// Moves the map. It waits in steps of 20 ms at most, between which transactions may begin: one that is nested in a
    /// read under way must not wait for its own thread.
    /// - Parameters:
    ///   - wanted: bytes; fewer if the address space does not have them.
    ///   - least: any map larger than this is enough.
    ///   - entered: 1 if the caller has entered, otherwise 0.
    ///   - steps: how many times 0.1 ms to wait for transactions under way.
    /// - Returns: false if transactions under way did not end.
    private func remap(to wanted: Int, least: Int, entered: Int, steps: Int) throws(LMDBError) -> Bool {
        guard isRemapping.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
        else { return false }
        defer { isRemapping.store(false, ordering: .sequentiallyConsistent) }
        guard slots.acquireAll(steps: steps) else { return false }
        defer { slots.unlockAll() }
        // `close()` waits for the slots, and does not come this far.
        if isClosed.load(ordering: .sequentiallyConsistent) { throw LMDBError.closed }
        for step in 0..<Int.max {
            if active.load(ordering: .sequentiallyConsistent) == entered { break }
            if step >= steps { return false }
            usleep(100)
        }
        let old = Int(info.me_mapsize)
        // Another thread has done it.
        if old > least { return true }
        let given = AddressSpace.reserve(max(0, wanted - old))
        guard let size = available(old + given, least: max(least, old)) else {
            AddressSpace.giveBack(given)
            throw LMDBError(code: ENOMEM, function: "mdb_env_set_mapsize")
        }
        AddressSpace.giveBack(old + given - size)
        reserved.add(size - old, ordering: .relaxed)
        let code = perform("mdb_env_set_mapsize", pointer) { mdb_env_set_mapsize(pointer, size) }
        mapMoved()
        if code == MDB_SUCCESS { return true }
        // LMDB has unmapped the file and cannot map it again: the only safe action is to end the process.
        isClosed.store(true, ordering: .sequentiallyConsistent)
        throw LMDBError(code: code, function: "mdb_env_set_mapsize")
    }

    /// The largest size up to `wanted` that the system would map now; nil if not more than `least`.
    private func available(_ wanted: Int, least: Int) -> Int? {
        var size = wanted
        while size > least {
            let address = mmap(nil, size, PROT_READ, MAP_SHARED, dataDescriptor, 0)
            if address != MAP_FAILED, let address {
                munmap(address, size)
                return size
            }
            size = least + (size - least) / 2 / pageSize * pageSize
        }
        return nil
    }
}
