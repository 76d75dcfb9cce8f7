import CLMDB

/// A position in one database. Valid inside the closure that received it.
public struct Cursor {
    let pointer: OpaquePointer
    let database: Database
    let space: Unmanaged<RowSpace>?
    // SAFETY: both are kept by `ReadTransaction.withCursor`.
    let opened: Unmanaged<OpenedRow>?
    /// Whether rows that cannot be opened are passed over.
    let skipsUnreadable: Bool

    /// A key-value pair; both point into the map (see `ReadTransaction`).
    public typealias Pair = (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

    /// The first pair of the database.
    public func first() throws(LMDBError) -> Pair? { try move(MDB_FIRST) }
    /// The last pair of the database.
    public func last() throws(LMDBError) -> Pair? { try move(MDB_LAST) }
    /// The pair after the current one.
    public func next() throws(LMDBError) -> Pair? { try move(MDB_NEXT) }

    /// The first pair whose key is not less than `key` (`MDB_SET_RANGE`).
    public func seek(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Pair? {
        try move(MDB_SET_RANGE, MDB_val(key))
    }

    /// The first pair whose byte key is not less than `key`. An empty key means the first pair.
    public func seek(_ key: [UInt8]) throws -> Pair? {
        if key.isEmpty { return try first() }
        return try key.withUnsafeBytes { bytes in try seek(bytes) }
    }

    /// The first pair whose integer key is not less than `key`.
    public func seek(_ key: UInt64) throws -> Pair? {
        try withUnsafeBytes(of: key) { bytes in try seek(bytes) }
    }

    private func move(_ operation: MDB_cursor_op, _ from: MDB_val = MDB_val()) throws(LMDBError) -> Pair? {
        guard let space = space?.takeUnretainedValue() else { return try step(operation, from) }
        return try moveSealed(space, operation, from)
    }

    @inline(never)
    private func moveSealed(
        _ space: RowSpace, _ operation: MDB_cursor_op, _ from: MDB_val
    ) throws(LMDBError) -> Pair? {
        let database = database
        var found =
            operation == MDB_SET_RANGE
            ? try space.withStored(database, UnsafeRawBufferPointer(from)) { stored throws(LMDBError) in
                try step(operation, MDB_val(stored))
            } : try step(operation, from)
        while let (key, value) = found {
            if let row = space.open(database, key, value, in: opened?.takeUnretainedValue()) { return row }
            if !skipsUnreadable { return (key, UnsafeRawBufferPointer(start: nil, count: 0)) }
            found = try step(operation == MDB_LAST ? MDB_PREV : MDB_NEXT, MDB_val())
        }
        return nil
    }

    private func step(_ operation: MDB_cursor_op, _ from: MDB_val) throws(LMDBError) -> Pair? {
        var key = from
        var value = MDB_val()
        let code = perform("mdb_cursor_get", mdb_txn_env(mdb_cursor_txn(pointer))) {
            mdb_cursor_get(pointer, &key, &value, operation)
        }
        if code == MDB_NOTFOUND { return nil }
        try check(code, "mdb_cursor_get")
        return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
    }
}
