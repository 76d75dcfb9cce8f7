import Foundation
import SystemPackage

/// Recounts a store's directory over and over on a thread of its own, and keeps the highest sum.
public final class BudgetSampler: @unchecked Sendable {
    // SAFETY: `highest` and `isOver` are touched only under `lock`.
    private let lock = NSLock()
    private var highest: Int64 = 0
    private var isOver = false
    private let done = DispatchSemaphore(value: 0)

    /// Starts sampling.
    public init(path: FilePath) {
        Thread.detachNewThread { [self] in
            while !lock.withLock({ isOver }) {
                let sum = recount(path)
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
