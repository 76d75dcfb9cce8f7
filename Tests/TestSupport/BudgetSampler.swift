import Foundation
import SystemPackage

/// Walks a store's directory continuously on a separate thread, and keeps the most bytes that it took at one moment.
///
/// A walk takes time: a file that is removed after it was counted may make room for one that is counted later. A file
/// that two walks in a row saw under one name was there at the moment between them, so only such files count, each with
/// the smaller of its two sizes: the sum is never more than the directory took.
public final class BudgetSampler: @unchecked Sendable {
    // SAFETY: `highest` and `isOver` are touched only under `lock`.
    private let lock = NSLock()
    private var highest: Int64 = 0
    private var isOver = false
    private let done = DispatchSemaphore(value: 0)

    /// Starts sampling.
    public init(path: FilePath) {
        Thread.detachNewThread { [self] in
            var last: [NamedFile: Int64] = [:]
            while !lock.withLock({ isOver }) {
                let files = regularFiles(under: path)
                var seen = Set<UInt64>()
                var sum: Int64 = 0
                for (file, bytes) in files {
                    guard let before = last[file], seen.insert(file.inode).inserted else { continue }
                    sum += min(before, bytes)
                }
                last = files
                lock.withLock { highest = max(highest, sum) }
            }
            done.signal()
        }
    }

    /// Ends sampling; returns the most bytes seen, 0 if there was no time for two walks.
    public func stop() -> Int64 {
        lock.withLock { isOver = true }
        done.wait()
        return lock.withLock { highest }
    }
}
