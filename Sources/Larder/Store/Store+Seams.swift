// What this package's own tests need beside the public interface.

extension Store {
    /// Jobs that stores of this process have moved to another thread since it began.
    package static var pooledJobs: Int { IOPool.shared.jobCount + IOPool.long.jobCount }

    /// A checkpoint now, instead of when one is due: see "Epochs and suspects" in `docs/recovery.md`.
    package func checkpoint() throws {
        _ = try writing()
        engine.commitPending()
        try engine.checkpoint()
    }
}
