import Foundation
import SystemPackage

/// Recounts a store's directory over and over on a thread of its own, and keeps the highest sum.
///
/// A walk is not of one moment: a file that is renamed meanwhile is counted once by its inode, but one that goes after it
/// was counted and makes room for another is not noticed. A sum over `limit` therefore counts only if five walks in a row
/// are over it; the engine's own count at each commit (`ModelTests`, `BudgetTests`) is the strict one.
public final class BudgetSampler: @unchecked Sendable {
    // SAFETY: `highest` and `isOver` are touched only under `lock`.
    private let lock = NSLock()
    private var highest: Int64 = 0
    private var isOver = false
    private let done = DispatchSemaphore(value: 0)

    /// Starts sampling.
    public init(path: FilePath, limit: Int64 = .max) {
        Thread.detachNewThread { [self] in
            while !lock.withLock({ isOver }) {
                var sum = recount(path)
                for _ in 0..<4 where sum > limit { sum = min(sum, recount(path)) }
                lock.withLock { highest = max(highest, sum) }
            }
            done.signal()
        }
    }

    /// Ends sampling; returns the highest sum seen.
    public func stop() -> Int64 {
        lock.withLock { isOver = true }
        done.wait()
        return lock.withLock { highest }
    }
}
