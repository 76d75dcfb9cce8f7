// What this package's own tests need beside the public interface.

extension Store {
    /// A checkpoint now, instead of when one is due: see "Epochs and suspects" in `docs/recovery.md`.
    package func checkpoint() throws {
        _ = try writing()
        engine.commitPending()
        try engine.checkpoint()
    }
}
