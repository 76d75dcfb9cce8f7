import CLMDB

/// Runs of unused pages that may be given back to the file system.
public struct FreePageRun: Sendable, Hashable {
    /// The first page of the run.
    public let firstPage: Int
    /// Number of pages.
    public let count: Int
}

extension Environment {
    /// Lists the runs of free pages that no snapshot and no recovery can need, in order.
    ///
    /// Call it while holding the writer lock (an open `WriteTransaction` without changes) and right after `sync()`. The
    /// free list maps the transaction that freed pages to those pages (`mdb_stat -f` reads it the same way). Pages
    /// freed by transaction T are part of every snapshot older than T, so only lists with T no later than the oldest
    /// reader are used. As the latest meta page is on disk, recovery cannot go back before it.
    ///
    /// From later lists, only pages beyond the end of the file as earlier snapshots know it are used: the file never
    /// gets shorter, so a page with a greater number than the last one of a snapshot is not part of that snapshot.
    /// - Parameters:
    ///   - minimumRun: shorter runs are left out; at least 1.
    ///   - lastPage: the last page of a snapshot, or a later one; nil if it is not known.
    public func reclaimablePages(
        holding writer: WriteTransaction, minimumRun: Int, lastPage: (UInt64) -> Int? = { _ in nil }
    ) throws -> [FreePageRun] {
        // A write transaction may not open the free list; a snapshot taken under the writer lock sees the same one.
        try readUnpooled { snapshot in
            let readers = try readers().filter { $0 < snapshot.id }
            var pages: [Int] = []
            try snapshot.withCursor(.freeList) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    guard key.count == 8 else { break }
                    let freed = UInt64(key.loadUnaligned(as: UInt.self))
                    // Snapshots of later transactions do not have the page; of the others the latest has the longest
                    // file.
                    var last = -1
                    if let reader = readers.last(where: { $0 < freed }) { last = lastPage(reader) ?? .max }
                    if last < .max {
                        for index in 0..<Self.listed(value) {
                            let page = value.loadUnaligned(fromByteOffset: (index + 1) * 8, as: UInt.self)
                            if Int(bitPattern: page) > last { pages.append(Int(bitPattern: page)) }
                        }
                    }
                    pair = try cursor.next()
                }
            }
            return Self.runs(of: pages, minimum: minimumRun)
        }
    }

    /// The number of free pages that the next transaction may use: those freed by a transaction not younger than the
    /// oldest snapshot. Cost grows with their lists (8 bytes a page).
    public func reusablePageCount() throws -> Int {
        try readUnpooled { snapshot in
            let oldest = min(try oldestReader() ?? snapshot.id, snapshot.id)
            var total = 0
            try snapshot.withCursor(.freeList) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair, key.count == 8, UInt64(key.loadUnaligned(as: UInt.self)) <= oldest {
                    total += Self.listed(value)
                    pair = try cursor.next()
                }
            }
            return total
        }
    }

    /// The number of pages in LMDB's free list, mature or not. Cost grows with the list (8 bytes a page).
    public func freePageCount() throws -> Int {
        try readUnpooled { snapshot in
            var total = 0
            try snapshot.withCursor(.freeList) { cursor in
                var pair = try cursor.first()
                while let (_, value) = pair {
                    total += Self.listed(value)
                    pair = try cursor.next()
                }
            }
            return total
        }
    }

    /// The count at the head of a list; in a damaged file it may be any number.
    private static func listed(_ value: UnsafeRawBufferPointer) -> Int {
        guard value.count >= 8 else { return 0 }
        return Int(clamping: min(value.loadUnaligned(as: UInt64.self), UInt64(value.count / 8 - 1)))
    }

    /// Pages in use by the trees, as seen by `transaction`: the given databases, LMDB's own two, and the meta pages.
    /// O(number of databases).
    public func usedPages(in transaction: ReadTransaction, databases: [Database]) throws(LMDBError) -> Int {
        var pages = 2
        for database in databases + [.main] {
            pages += try transaction.statistics(database).pages
        }
        return pages
    }

    private static func runs(of pages: [Int], minimum: Int) -> [FreePageRun] {
        var runs: [FreePageRun] = []
        var start = -1
        var end = -1
        for page in pages.sorted() {
            if page == end {
                end += 1
                continue
            }
            if end - start >= minimum, start >= 0 { runs.append(FreePageRun(firstPage: start, count: end - start)) }
            start = page
            end = page + 1
        }
        if end - start >= minimum, start >= 0 { runs.append(FreePageRun(firstPage: start, count: end - start)) }
        return runs
    }

    /// Rows of the reader table that processes hold, of `Options.maxReaders`. `mdb_reader_list`.
    public func readerRows() throws(LMDBError) -> Int {
        try enter()
        defer { leave() }
        return LMDB.readerRows(pointer)
    }

    /// True if a reader of some process holds pages that later commits have freed.
    public func isSnapshotHeld() throws(LMDBError) -> Bool {
        try enter()
        defer { leave() }
        guard let oldest = try oldestReader() else { return false }
        return oldest < lastTransaction
    }

    /// The oldest snapshot any live reader of any process holds; nil if there is none. `mdb_reader_list`.
    public func oldestReader() throws(LMDBError) -> UInt64? { try readers().first }

    /// The snapshots that readers of any process hold, oldest first. `mdb_reader_list`.
    public func readers() throws(LMDBError) -> [UInt64] {
        try enter()
        defer { leave() }
        // The table is given as text, one line a reader: pid, thread, transaction ("-" when it holds none).
        final class Lines { var held: [UInt64] = [] }
        let lines = Lines()
        let code = withExtendedLifetime(lines) {
            mdb_reader_list(
                pointer,
                { text, context in
                    guard let text, let context else { return 0 }
                    let lines = Unmanaged<Lines>.fromOpaque(context).takeUnretainedValue()
                    let fields = String(cString: text).split(whereSeparator: \.isWhitespace)
                    if fields.count == 3, let transaction = UInt64(fields[2]) { lines.held.append(transaction) }
                    return 0
                },
                Unmanaged.passUnretained(lines).toOpaque())
        }
        if code < 0 { throw LMDBError(code: code, function: "mdb_reader_list") }
        return lines.held.sorted()
    }
}
