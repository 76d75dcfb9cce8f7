import CLMDB

/// A snapshot of an environment.
///
/// Nothing that a transaction returns may outlive it: values point into LMDB's map, which "is valid only until a
/// subsequent update operation, or the end of the transaction" (`mdb_get`, lmdb.h). Copy anything that has to stay.
public struct ReadTransaction {
    let pointer: OpaquePointer
    /// The pooled slot it runs in, 0..<`Environment.slotCount`, which no other thread uses at the same time. Nil: a
    /// separate transaction.
    public let slot: Int?
    // SAFETY: kept by what the transaction runs in until it ends. A lookup must not count references to it.
    /// Where sealed rows are opened. Nil: rows are stored as they are.
    let space: Unmanaged<RowSpace>?

    @usableFromInline
    init(_ read: Environment.Read) {
        pointer = read.transaction
        slot = read.slot?.number
        space = read.space
    }

    init(pointer: OpaquePointer, space: Unmanaged<RowSpace>?) {
        self.pointer = pointer
        slot = nil
        self.space = space
    }

    /// The number of the transaction whose state this snapshot shows (`mdb_txn_id`).
    public var id: UInt64 { UInt64(mdb_txn_id(pointer)) }

    /// The value stored under `key`, or nil. Also nil for a key that no database can hold, which a damaged row may
    /// contain. `mdb_get`; O(log n).
    @inline(__always)
    public func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        if let space, database.number > 0 { return try getSealed(space.takeUnretainedValue(), database, key) }
        var key = MDB_val(key)
        var value = MDB_val()
        let code = perform("mdb_get", in: pointer) { mdb_get(pointer, database.handle, &key, &value) }
        if code == MDB_NOTFOUND || code == MDB_BAD_VALSIZE { return nil }
        try check(code, "mdb_get")
        return UnsafeRawBufferPointer(value)
    }

    /// The value stored under a byte key, or nil.
    @inline(__always)
    public func get(_ database: Database, _ key: [UInt8]) throws -> UnsafeRawBufferPointer? {
        try key.withUnsafeBytes { bytes in try get(database, bytes) }
    }

    /// The value stored under an integer key, or nil.
    @inline(__always)
    public func get(_ database: Database, _ key: UInt64) throws -> UnsafeRawBufferPointer? {
        try withUnsafeBytes(of: key) { bytes in try get(database, bytes) }
    }

    /// Throws damage if the head of a value on overflow pages is wrong: when LMDB deletes or replaces the value, it
    /// frees as many pages as the head says. Values within a page of the tree have no such head.
    ///
    /// Where rows are sealed, a write transaction looks at the head before it opens a value.
    /// - Parameters:
    ///   - value: as `get` returned it.
    ///   - keyCount: length of its key.
    public func checkHead(of value: UnsafeRawBufferPointer, keyCount: Int) throws(LMDBError) {
        if space == nil { try checkValueHead(of: value, keyCount: keyCount, in: pointer) }
    }

    /// Page and entry counts, uncommitted changes included when called on a write transaction. `mdb_stat`; O(1).
    public func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        var stat = MDB_stat()
        try check(perform("mdb_stat", in: pointer) { mdb_stat(pointer, database.handle, &stat) }, "mdb_stat")
        return DatabaseStatistics(stat)
    }

    /// Runs `body` with a cursor, closed when it returns.
    ///
    /// Where rows are sealed, a pair is valid until the cursor has moved twice. A row that cannot be opened has an
    /// empty value. In a database with hidden keys its key is not known either, so that it is passed over.
    /// - Parameter showsUnreadable: whether such rows are given all the same, under their keys as they are stored, by
    ///   which they can be deleted.
    public func withCursor<R>(
        _ database: Database, showsUnreadable: Bool = false, _ body: (Cursor) throws -> R
    ) throws -> R {
        var cursor: OpaquePointer?
        try check(
            perform("mdb_cursor_open", in: pointer) { mdb_cursor_open(pointer, database.handle, &cursor) },
            "mdb_cursor_open")
        guard let cursor else { throw LMDBError(code: MDB_PANIC, function: "mdb_cursor_open") }
        defer { mdb_cursor_close(cursor) }
        guard let space, database.number > 0 else {
            return try body(
                Cursor(pointer: cursor, database: database, space: nil, opened: nil, skipsUnreadable: false))
        }
        let opened = OpenedRow()
        return try withExtendedLifetime(opened) {
            try body(
                Cursor(
                    pointer: cursor, database: database, space: space, opened: .passUnretained(opened),
                    skipsUnreadable: database.sealing.hidden != .none && !showsUnreadable))
        }
    }
}

/// See `ReadTransaction.checkHead`.
func checkValueHead(
    of value: UnsafeRawBufferPointer, keyCount: Int, in transaction: OpaquePointer
) throws(LMDBError) {
    guard value.count > 200, let base = value.baseAddress, let format = PageFormat.current else { return }
    var stat = MDB_stat()
    mdb_env_stat(mdb_txn_env(transaction), &stat)
    let pageSize = Int(stat.ms_psize)
    guard
        PageView.nodeHeaderLength + format.keySpace(keyCount) + value.count > format.largestNode(pageSize: pageSize)
    else {
        return
    }
    // SAFETY: such a value starts right after the page header, both in the map and in memory of the transaction.
    let head = UnsafeRawBufferPointer(start: base - format.headerLength, count: format.headerLength)
    let view = PageView(raw: head, format: format)
    let dirty: UInt16 = 0x10
    guard view.flags & ~dirty == PageView.overflowFlag,
        UInt64(view.overflowPages) == format.overflowPages(UInt64(value.count), pageSize: pageSize)
    else { throw LMDBError(code: MDB_CORRUPTED, function: "mdb_del") }
}

extension MDB_val {
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    init(_ value: MDB_val) {
        self.init(start: value.mv_data, count: value.mv_size)
    }
}
