import CRawLMDB
import SystemPackage

/// LMDB without a wrapper around it.
enum RawLMDB {
    /// Opens an environment in a directory, with one tree. Commits are synced except for the meta page, as in Larder.
    static func open(_ path: FilePath, flags: Int32 = 0) throws -> (environment: OpaquePointer, database: MDB_dbi) {
        var environment: OpaquePointer?
        try check("mdb_env_create", mdb_env_create(&environment))
        guard let environment else { throw BenchError("mdb_env_create gave no environment") }
        try check("mdb_env_set_mapsize", mdb_env_set_mapsize(environment, 1 << 40))
        let flags = UInt32(MDB_NOTLS | MDB_NOMETASYNC | flags)
        try check("mdb_env_open", mdb_env_open(environment, path.string, flags, 0o600))
        var transaction: OpaquePointer?
        try check("mdb_txn_begin", mdb_txn_begin(environment, nil, 0, &transaction))
        var database: MDB_dbi = 0
        try check("mdb_dbi_open", mdb_dbi_open(transaction, nil, 0, &database))
        try check("mdb_txn_commit", mdb_txn_commit(transaction))
        return (environment, database)
    }

    static func withValue<R>(_ bytes: UnsafeRawBufferPointer, _ body: (inout MDB_val) throws -> R) rethrows -> R {
        // SAFETY: LMDB does not write through keys, nor through values that are put.
        var value = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
        return try body(&value)
    }

    static func check(_ call: String, _ code: Int32) throws {
        if code != 0 { throw BenchError("\(call): \(String(cString: mdb_strerror(code)))") }
    }
}
