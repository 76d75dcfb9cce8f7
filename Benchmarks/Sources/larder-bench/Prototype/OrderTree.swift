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
        (environment, database) = try RawLMDB.open(path)
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
        try RawLMDB.check("mdb_txn_begin", mdb_txn_begin(environment, nil, 0, &transaction))
        do {
            for (key, place) in changes {
                try key.withUnsafeBytes { try RawLMDB.withValue($0) { try apply(transaction, &$0, place) } }
            }
        } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try RawLMDB.check("mdb_txn_commit", mdb_txn_commit(transaction))
    }

    private func apply(_ transaction: OpaquePointer?, _ key: inout MDB_val, _ place: UInt64) throws {
        if place == 0 {
            let code = mdb_del(transaction, database, &key, nil)
            if code != MDB_NOTFOUND { try RawLMDB.check("mdb_del", code) }
            return
        }
        try withUnsafeBytes(of: place) { bytes in
            try RawLMDB.withValue(bytes) { value in
                try RawLMDB.check("mdb_put", mdb_put(transaction, database, &key, &value, 0))
            }
        }
    }
}
