import Synchronization

/// A progress bar that several threads may update.
final class ProgressLine: Sendable {
    // SAFETY: the bar is touched only under the lock.
    private struct Guarded: @unchecked Sendable { let bar: ProgressBar }
    private let bar: Mutex<Guarded>

    /// As `ProgressBar`.
    init(_ title: String, isQuiet: Bool) { bar = Mutex(Guarded(bar: ProgressBar(title, isQuiet: isQuiet))) }

    /// As `ProgressBar.update`.
    func update(_ done: Int64, of total: Int64, _ detail: String) {
        bar.withLock { $0.bar.update(done, of: total, detail) }
    }

    /// As `ProgressBar.finish`.
    func finish() { bar.withLock { $0.bar.finish() } }
}
