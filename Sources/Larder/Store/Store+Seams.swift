// What the other modules of this package, and its tests, need in addition to the public interface.

extension Store {
    /// Number of jobs that stores of this process have moved to another thread since it began.
    package static var pooledJobs: Int { IOPool.shared.jobCount + IOPool.long.jobCount }

    /// As the public `perform`, for calls that end soon, and whatever happens to the task.
    package func performShort<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await IOPool.shared.run(body)
    }

    /// As the public `perform`, whatever happens to the task.
    package func performLong<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await IOPool.long.run(body)
    }

    /// True if the index has an entry that is selected, or a body in progress. Does not wait for pending commits. May
    /// wait for the disk.
    package func hasCommitted(_ selection: Selection) throws -> Bool {
        try requireOpen()
        var walk = EntryWalk(try engine.descriptions.filter(selection, version: version))
        while !walk.isOver {
            let batch = try engine.read { try walk.next(engine.index, $0, limit: 16) }
            if !batch.keys.isEmpty { return true }
        }
        return false
    }

    /// Number of bodies that this store itself found damaged or lost since it was opened.
    package var damagedBodies: Int { engine.damage.count.load(ordering: .relaxed) }

    /// The largest number of operations in a `WriteBatch` that `isHousekeeping`.
    package func housekeepingLimit() throws -> Int { max(1, try engine.context.removalLimit() / 2) }

    /// Bytes that can be allocated on the store's file system.
    package func freeDiskBytes() throws -> Int64 { try FileSystem.freeBytes(engine.files.staging) }

    /// Makes a checkpoint now, instead of when one is due: see "Epochs and suspects" in `docs/recovery.md`.
    package func checkpoint() throws {
        let writing = try writing()
        engine.commitPending()
        try writing.checkpoints.make()
    }
}

#if LARDER_FAILPOINTS
    import Failpoints

    extension Store {
        /// System calls and steps of the engine at which a thread may wait: for a disk, a lock that another process
        /// has, a commit.
        private static let waits = [
            "pwrite", "fallocate", "ftruncate", "fdatasync", "fsync", "syncfs", "rename", "unlink", "mkdir", "link",
            "copy_file_range", "pread", "opendir", "mdb_txn_begin.write", "mdb_txn_commit", "mdb_env_sync",
            "wait.batch", "wait.commit", "wait.room",
        ]

        /// Calls `body`, on the thread that would wait, at each point where the engine may wait; for as long as the
        /// scope exists.
        package func observeWaits(_ body: @escaping @Sendable (_ call: String) -> Void) -> FaultScope {
            let scope = FaultScope(under: path.string)
            for call in Self.waits { scope.at(call) { body(call) } }
            return scope
        }
    }
#endif
