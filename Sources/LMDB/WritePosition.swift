import CLMDB

/// A pair found in a write transaction, which can be changed or removed in place without another descent of the tree.
///
/// `close()` it before the transaction ends, and before the next change of the same database by other means.
public struct WritePosition {
    let transaction: WriteTransaction
    let database: Database
    let cursor: OpaquePointer
    /// As it is stored.
    let key: MDB_val
    /// The key, where rows are sealed.
    let name: [UInt8]
    /// Where the row is opened then.
    let opened: OpenedRow?
    /// The value; valid until the next change in the transaction.
    public let value: UnsafeRawBufferPointer

    /// Removes the pair. `mdb_cursor_del`.
    public func delete() throws(LMDBError) {
        note(UnsafeRawBufferPointer(key))
        let code = perform("mdb_cursor_del", mdb_txn_env(mdb_cursor_txn(cursor))) { mdb_cursor_del(cursor, 0) }
        try check(code, "mdb_cursor_del")
        transaction.hasChanges = true
    }

    /// Replaces the value by one of the same length. `mdb_cursor_put`, `MDB_CURRENT`.
    public func replace(_ bytes: UnsafeRawBufferPointer) throws(LMDBError) {
        // A value with pages of its own is removed and put, and LMDB moves the key in its page before it copies it.
        let code = withUnsafeTemporaryAllocation(byteCount: key.mv_size, alignment: 8) { copy in
            copy.copyMemory(from: UnsafeRawBufferPointer(key))
            note(UnsafeRawBufferPointer(copy))
            var key = MDB_val(UnsafeRawBufferPointer(copy))
            guard let space = transaction.space, database.number > 0 else { return put(&key, MDB_val(bytes)) }
            let length = space.length(database, key: name.count, value: bytes.count)
            return withUnsafeTemporaryAllocation(byteCount: length, alignment: 16) { sealed in
                name.withUnsafeBytes {
                    space.seal(
                        database, key: $0, stored: UnsafeRawBufferPointer(copy), count: bytes.count, into: sealed
                    ) { $0.copyMemory(from: bytes) }
                }
                return put(&key, MDB_val(UnsafeRawBufferPointer(sealed)))
            }
        }
        try check(code, "mdb_cursor_put")
        transaction.hasChanges = true
    }

    private func note(_ stored: UnsafeRawBufferPointer) {
        if opened == nil { return transaction.note(database, stored) }
        name.withUnsafeBytes { transaction.note(database, $0) }
    }

    private func put(_ key: inout MDB_val, _ bytes: MDB_val) -> Int32 {
        var value = bytes
        return perform("mdb_cursor_put", mdb_txn_env(mdb_cursor_txn(cursor))) {
            mdb_cursor_put(cursor, &key, &value, UInt32(MDB_CURRENT))
        }
    }

    /// Gives the cursor back to the transaction.
    public func close() { transaction.giveBack(cursor) }
}

extension WriteTransaction {
    /// The pair under `key`; nil if there is none. `mdb_cursor_get`, `MDB_SET`.
    public func position(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> WritePosition? {
        if let space, database.number > 0 {
            return try space.withStored(database, key) { stored throws(LMDBError) in
                try position(database, stored, named: key, in: space)
            }
        }
        return try position(database, key, named: nil, in: nil)
    }

    private func position(
        _ database: Database, _ key: UnsafeRawBufferPointer, named name: UnsafeRawBufferPointer?, in space: RowSpace?
    ) throws(LMDBError) -> WritePosition? {
        let cursor = try takeCursor(database)
        let transaction = reading.pointer
        var found = MDB_val(key)
        var value = MDB_val()
        let code = perform("mdb_cursor_get", in: transaction) {
            mdb_cursor_get(cursor, &found, &value, MDB_SET_KEY)
        }
        if code == MDB_SUCCESS {
            var bytes = UnsafeRawBufferPointer(value)
            let opened = space.map { _ in OpenedRow() }
            if let space, let name {
                bytes = try space.value(
                    database, name, UnsafeRawBufferPointer(found), bytes, in: opened, of: transaction)
            }
            return WritePosition(
                transaction: self, database: database, cursor: cursor, key: found, name: name.map { Array($0) } ?? [],
                opened: opened, value: bytes)
        }
        giveBack(cursor)
        // A key that no database can hold, which a damaged row may contain.
        if code == MDB_NOTFOUND || code == MDB_BAD_VALSIZE { return nil }
        throw LMDBError(code: code, function: "mdb_cursor_get")
    }
}
