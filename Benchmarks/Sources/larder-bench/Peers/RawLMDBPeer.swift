import CRawLMDB
import Synchronization
import SystemPackage

/// LMDB itself: what an engine on top of it cannot beat. Bodies under their keys, 256 puts in a transaction, commits
/// synced except for the meta page (`MDB_NOMETASYNC`), as in Larder. No hash, no second tree, no budget.
final class RawLMDBPeer: Peer {
    private struct Writing: @unchecked Sendable {
        // SAFETY: used only under the mutex it lies in.
        var transaction: OpaquePointer?
        var count = 0
    }

    /// A thread's read transaction, reset between gets.
    private final class Reader {
        let transaction: OpaquePointer
        init(_ transaction: OpaquePointer) { self.transaction = transaction }
        deinit { mdb_txn_abort(transaction) }
    }

    // SAFETY: LMDB's environment may be used by several threads; set once.
    nonisolated(unsafe) private let environment: OpaquePointer
    private let database: MDB_dbi
    private let writing = Mutex(Writing())

    init(_ path: FilePath) throws {
        (environment, database) = try RawLMDB.open(path, flags: MDB_NORDAHEAD)
    }

    deinit { mdb_env_close(environment) }

    /// Transactions of LMDB belong to a thread.
    var maximumThreads: Int { 1 }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.key = .init(bytes: Name.bytes(index))
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws {
        try change { transaction in
            try Self.withValue(name.key.bytes) { key in
                try Self.withValue(body) { value in
                    try RawLMDB.check("mdb_put", mdb_put(transaction, database, &key, &value, 0))
                }
            }
        }
    }

    func putDurable(_ body: [UInt8], _ name: Name) throws {
        try put(body, name)
        try settle()
        try RawLMDB.check("mdb_env_sync", mdb_env_sync(environment, 1))
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        let reader: Reader
        if let held = scratch.held as? Reader {
            reader = held
            try RawLMDB.check("mdb_txn_renew", mdb_txn_renew(reader.transaction))
        } else {
            var transaction: OpaquePointer?
            try RawLMDB.check("mdb_txn_begin", mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction))
            guard let transaction else { throw BenchError("mdb_txn_begin gave no transaction") }
            reader = Reader(transaction)
            scratch.held = reader
        }
        defer { mdb_txn_reset(reader.transaction) }
        return try Self.withValue(name.key.bytes) { key in
            var value = MDB_val()
            let code = mdb_get(reader.transaction, database, &key, &value)
            if code == MDB_NOTFOUND { return nil }
            try RawLMDB.check("mdb_get", code)
            return scratch.take(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
        }
    }

    func remove(_ name: Name) throws {
        try change { transaction in
            try Self.withValue(name.key.bytes) { key in
                let code = mdb_del(transaction, database, &key, nil)
                if code != MDB_NOTFOUND { try RawLMDB.check("mdb_del", code) }
            }
        }
    }

    func settle() throws { try writing.withLock { try commit(&$0) } }

    func close() throws { try settle() }

    private func change(_ body: (OpaquePointer) throws -> Void) throws {
        try writing.withLock { writing in
            if writing.transaction == nil {
                try RawLMDB.check("mdb_txn_begin", mdb_txn_begin(environment, nil, 0, &writing.transaction))
            }
            guard let transaction = writing.transaction else { return }
            try body(transaction)
            writing.count += 1
            if writing.count == 256 { try commit(&writing) }
        }
    }

    private func commit(_ writing: inout Writing) throws {
        guard let transaction = writing.transaction else { return }
        writing = Writing()
        try RawLMDB.check("mdb_txn_commit", mdb_txn_commit(transaction))
    }

    private static func withValue<R>(_ bytes: [UInt8], _ body: (inout MDB_val) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes { try RawLMDB.withValue($0, body) }
    }
}
