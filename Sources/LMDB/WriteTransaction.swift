import CLMDB

/// The only write transaction of an environment, across all processes.
///
/// It holds LMDB's writer lock from `Environment.beginWrite()` until `commit()` or `abort()`, and stays on the thread
/// that began it ("A transaction and its cursors must only be used by a single thread", lmdb.h). `deinit` aborts.
public final class WriteTransaction {
    private var pointer: OpaquePointer?
    private let environment: Environment
    /// The databases whose changes are noted.
    private var watched: (Database, Database)?
    /// What was changed in the databases of `watch(_:)`.
    public private(set) var changes = ChangedBuckets()
    /// Whether any change succeeded. LMDB's commit of a transaction without one writes nothing, and gives its number
    /// again. `mdb_txn_commit`.
    public internal(set) var hasChanges = false

    /// Where sealed rows are opened. Nil: rows are stored as they are.
    let space: RowSpace?

    init(pointer: OpaquePointer, environment: Environment, _ cipher: (any RowCipher)?) {
        self.pointer = pointer
        self.environment = environment
        space = cipher.map { RowSpace($0, checksHeads: true) }
    }

    deinit { abort() }

    private var live: OpaquePointer {
        guard let pointer else { preconditionFailure("write transaction used after its end") }
        return pointer
    }

    /// Has changes of these databases noted from now on.
    public func watch(_ first: Database, _ second: Database) { watched = (first, second) }

    @inline(__always)
    func note(_ database: Database, _ key: UnsafeRawBufferPointer) {
        if isWatched(database) { changes.note(key) }
    }

    private func isWatched(_ database: Database) -> Bool {
        watched.map { $0.0 == database || $0.1 == database } ?? false
    }

    /// A cursor for each database that was asked for a position, kept until the transaction ends: LMDB allocates one
    /// each time. `mdb_cursor_open`.
    private var cursors: [(database: Database, cursor: OpaquePointer, isFree: Bool)] = []

    /// A cursor that no position has.
    func takeCursor(_ database: Database) throws(LMDBError) -> OpaquePointer {
        if let place = cursors.firstIndex(where: { $0.database == database && $0.isFree }) {
            cursors[place].isFree = false
            return cursors[place].cursor
        }
        var cursor: OpaquePointer?
        let transaction = live
        let code = perform("mdb_cursor_open", in: transaction) {
            mdb_cursor_open(transaction, database.handle, &cursor)
        }
        try check(code, "mdb_cursor_open")
        guard let cursor else { throw LMDBError(code: MDB_PANIC, function: "mdb_cursor_open") }
        cursors.append((database, cursor, false))
        return cursor
    }

    func giveBack(_ cursor: OpaquePointer) {
        guard let place = cursors.firstIndex(where: { $0.cursor == cursor }) else { return }
        cursors[place].isFree = true
    }

    private func closeCursors() {
        for (_, cursor, _) in cursors { mdb_cursor_close(cursor) }
        cursors = []
    }

    /// This transaction seen as a snapshot: reads show its own changes.
    public var reading: ReadTransaction {
        ReadTransaction(pointer: live, space: space.map(Unmanaged.passUnretained))
    }

    /// Stores `value` under `key`, replacing any value there. `mdb_put`.
    public func put(_ database: Database, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer)
        throws(LMDBError)
    {
        note(database, key)
        if let space, database.number > 0 {
            _ = try putSealed(space, database, key, count: value.count, flags: 0) { $0.copyMemory(from: value) }
            return
        }
        var key = MDB_val(key)
        var value = MDB_val(value)
        try check(perform("mdb_put", in: live) { mdb_put(live, database.handle, &key, &value, 0) }, "mdb_put")
        hasChanges = true
    }

    /// Stores `value` under a byte key.
    public func put(_ database: Database, _ key: [UInt8], _ value: [UInt8]) throws {
        try key.withUnsafeBytes { key in
            try value.withUnsafeBytes { value in try put(database, key, value) }
        }
    }

    /// Stores `value` under an integer key.
    public func put(_ database: Database, _ key: UInt64, _ value: [UInt8]) throws {
        try withUnsafeBytes(of: key) { key in
            try value.withUnsafeBytes { value in try put(database, key, value) }
        }
    }

    /// Reserves `count` bytes under an integer key greater than every existing key, and lets `fill` write them.
    ///
    /// `MDB_APPEND | MDB_RESERVE`: pages fill up completely and the value is built in place, without a copy.
    /// The buffer is valid only inside `fill`, which must write all of it.
    public func append(
        _ database: Database, _ key: UInt64, count: Int, fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws {
        try reserve(database, key, count: count, flags: UInt32(MDB_APPEND), fill: fill)
    }

    /// Reserves `count` bytes under an integer key, replacing any value there. `MDB_RESERVE`.
    public func replace(
        _ database: Database, _ key: UInt64, count: Int, fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws {
        try reserve(database, key, count: count, flags: 0, fill: fill)
    }

    private func reserve(
        _ database: Database, _ key: UInt64, count: Int, flags: UInt32, fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws {
        if let space, database.number > 0 {
            try withUnsafeBytes(of: key) { bytes in
                note(database, bytes)
                _ = try putSealed(space, database, bytes, count: count, flags: flags, fill: fill)
            }
            return
        }
        var value = MDB_val(mv_size: count, mv_data: nil)
        try withUnsafeBytes(of: key) { bytes in
            note(database, bytes)
            var key = MDB_val(bytes)
            let code = perform("mdb_put", in: live) {
                mdb_put(live, database.handle, &key, &value, flags | UInt32(MDB_RESERVE))
            }
            try check(code, "mdb_put")
        }
        hasChanges = true
        fill(UnsafeMutableRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }

    /// Reserves `count` bytes under a key that does not exist, and lets `fill` write them; if the key exists, returns
    /// its value and changes nothing. `MDB_NOOVERWRITE | MDB_RESERVE`: one descent of the tree instead of a lookup and
    /// a put.
    public func insert(
        _ database: Database, _ key: UnsafeRawBufferPointer, count: Int, fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws(LMDBError) -> UnsafeRawBufferPointer? {
        note(database, key)
        if let space, database.number > 0 {
            return try putSealed(space, database, key, count: count, flags: UInt32(MDB_NOOVERWRITE), fill: fill)
        }
        var key = MDB_val(key)
        var value = MDB_val(mv_size: count, mv_data: nil)
        let code = perform("mdb_put", in: live) {
            mdb_put(live, database.handle, &key, &value, UInt32(MDB_NOOVERWRITE) | UInt32(MDB_RESERVE))
        }
        if code == MDB_KEYEXIST { return UnsafeRawBufferPointer(value) }
        try check(code, "mdb_put")
        hasChanges = true
        fill(UnsafeMutableRawBufferPointer(start: value.mv_data, count: value.mv_size))
        return nil
    }

    /// Removes `key`; false if it did not exist, or is a key that no database can hold. `mdb_del`.
    @discardableResult
    public func delete(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        note(database, key)
        if let space, database.number > 0 { return try deleteSealed(space, database, key) }
        return try deleteStored(database, key)
    }

    func deleteStored(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        var key = MDB_val(key)
        let code = perform("mdb_del", in: live) { mdb_del(live, database.handle, &key, nil) }
        if code == MDB_NOTFOUND || code == MDB_BAD_VALSIZE { return false }
        try check(code, "mdb_del")
        hasChanges = true
        return true
    }

    /// Removes a byte key; false if it did not exist.
    @discardableResult
    public func delete(_ database: Database, _ key: [UInt8]) throws -> Bool {
        try key.withUnsafeBytes { key in try delete(database, key) }
    }

    /// Removes an integer key; false if it did not exist.
    @discardableResult
    public func delete(_ database: Database, _ key: UInt64) throws -> Bool {
        try withUnsafeBytes(of: key) { key in try delete(database, key) }
    }

    /// Removes every pair of `database`. `mdb_drop`; cost grows with its leaf pages, not with its bytes.
    public func removeAll(_ database: Database) throws(LMDBError) {
        if isWatched(database) { changes.noteAll() }
        try check(perform("mdb_drop", in: live) { mdb_drop(live, database.handle, 0) }, "mdb_drop")
        hasChanges = true
    }

    /// Pages by which the file will be longer than it is now once this transaction is committed, the pages that the
    /// commit itself needs for the free list not included; nil if that cannot be known.
    ///
    /// LMDB offers no call for it. `struct MDB_txn` starts with two pointers and `mt_next_pgno`, "next unallocated
    /// page", in every 0.9 release (1.0: `LMDBLibrary.nextPageOffset`); `Environment.beginWrite()` checks that the word
    /// there equals the documented `me_last_pgno + 1` before it is used.
    public var appendedPages: Int? {
        guard let committed = environment.committedPages, environment.canPeekNextPage else { return nil }
        return Environment.nextPage(of: live) - committed
    }

    /// Makes the changes visible to every later transaction. The transaction ends even if this throws.
    public func commit() throws(LMDBError) {
        let transaction = live
        closeCursors()
        var isTried = false
        pointer = nil
        defer { environment.leave() }
        let code = perform("mdb_txn_commit", in: transaction) {
            isTried = true
            return mdb_txn_commit(transaction)
        }
        // For a commit that was made to fail: mdb_txn_commit frees the transaction whatever it returns.
        if !isTried { mdb_txn_abort(transaction) }
        try check(code, "mdb_txn_commit")
    }

    /// Drops the changes. No effect on a transaction that has ended.
    public func abort() {
        guard let pointer else { return }
        closeCursors()
        self.pointer = nil
        mdb_txn_abort(pointer)
        environment.leave()
    }
}
