import Locks

/// A progress bar for several threads.
package final class ProgressLine: Sendable {
    // SAFETY: the bar is touched only under the lock.
    private struct Guarded: @unchecked Sendable { let bar: ProgressBar }
    private let bar: Mutex<Guarded>

    /// As `ProgressBar`.
    package init(_ title: String, isQuiet: Bool) { bar = Mutex(Guarded(bar: ProgressBar(title, isQuiet: isQuiet))) }

    /// As `ProgressBar.update`.
    package func update(_ done: Int64, of total: Int64, _ detail: String) {
        bar.withLock { $0.bar.update(done, of: total, detail) }
    }

    /// As `ProgressBar.finish`.
    package func finish() { bar.withLock { $0.bar.finish() } }
}
