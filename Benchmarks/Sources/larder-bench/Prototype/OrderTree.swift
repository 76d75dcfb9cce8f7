import CRawLMDB
import Dispatch
import Synchronization
import SystemPackage

/// The keys in their order, in a tree of LMDB that is written behind: a batch at a time, in the order of its keys, on a
/// thread of its own. Listings and packages would read it; hits and puts do not.
final class OrderTree: @unchecked Sendable {
    /// Changes in a batch.
    private static let batch = 1 << 18
    // SAFETY: `pending` is touched under the peer's lock; `environment` by the queue, one batch at a time.
    private let environment: OpaquePointer
    private let database: MDB_dbi
    private var pending: [[UInt8]: UInt64] = [:]
    private let queue = DispatchQueue(label: "order")
    private let mayWrite = DispatchSemaphore(value: 2)
    private let failure = Mutex<BenchError?>(nil)

    init(_ path: FilePath) throws {
        try FileTree.makeDirectory(path)
        var environment: OpaquePointer?
        try Self.check("mdb_env_create", mdb_env_create(&environment))
        guard let environment else { throw BenchError("mdb_env_create gave no environment") }
        self.environment = environment
        try Self.check("mdb_env_set_mapsize", mdb_env_set_mapsize(environment, 1 << 40))
        try Self.check(
            "mdb_env_open", mdb_env_open(environment, path.string, UInt32(MDB_NOTLS | MDB_NOMETASYNC), 0o600))
        var transaction: OpaquePointer?
        try Self.check("mdb_txn_begin", mdb_txn_begin(environment, nil, 0, &transaction))
        var database: MDB_dbi = 0
        try Self.check("mdb_dbi_open", mdb_dbi_open(transaction, nil, 0, &database))
        try Self.check("mdb_txn_commit", mdb_txn_commit(transaction))
        self.database = database
    }

    deinit {
        queue.sync {}
        mdb_env_close(environment)
    }

    /// Notes where a key is; 0: nowhere.
    func note(_ key: [UInt8], _ place: UInt64) {
        pending[key] = place
        if pending.count >= Self.batch { write() }
    }

    /// Writes what is noted, behind the caller; with two batches on their way it waits for the first.
    private func write() {
        let batch = pending
        pending = [:]
        mayWrite.wait()
        queue.async { [self] in
            defer { mayWrite.signal() }
            do { try apply(batch.sorted { $0.key.lexicographicallyPrecedes($1.key) }) } catch {
                failure.withLock { $0 = error as? BenchError }
            }
        }
    }

    /// Returns when all of it is written.
    func finish() throws {
        if !pending.isEmpty { write() }
        queue.sync {}
        if let error = failure.withLock({ $0 }) { throw error }
    }

    private func apply(_ changes: [(key: [UInt8], value: UInt64)]) throws {
        var transaction: OpaquePointer?
        try Self.check("mdb_txn_begin", mdb_txn_begin(environment, nil, 0, &transaction))
        for change in changes {
            try change.key.withUnsafeBytes { raw in
                // SAFETY: LMDB does not write through keys, nor through values that are put.
                var key = MDB_val(mv_size: raw.count, mv_data: UnsafeMutableRawPointer(mutating: raw.baseAddress))
                if change.value == 0 {
                    let code = mdb_del(transaction, database, &key, nil)
                    if code != MDB_NOTFOUND { try Self.check("mdb_del", code) }
                    return
                }
                var place = change.value
                try withUnsafeMutableBytes(of: &place) { raw in
                    var value = MDB_val(mv_size: raw.count, mv_data: raw.baseAddress)
                    try Self.check("mdb_put", mdb_put(transaction, database, &key, &value, 0))
                }
            }
        }
        try Self.check("mdb_txn_commit", mdb_txn_commit(transaction))
    }

    private static func check(_ call: String, _ code: Int32) throws {
        if code != 0 { throw BenchError("\(call): \(String(cString: mdb_strerror(code)))") }
    }
}
