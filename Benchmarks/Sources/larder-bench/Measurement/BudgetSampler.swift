import Synchronization
import SystemPackage

/// Walks a store's directory continuously on a separate thread, and keeps the highest sum of allocated bytes.
///
/// A walk takes time: a file that is removed after it was counted, and the file that it makes room for, are both
/// counted. So a sum over the limit counts only if five walks in a row are over it, and then with the lowest of them.
final class BudgetSampler: Sendable {
    private let highest = Atomic<Int64>(0)
    private let count = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)
    private let thread = Mutex<Handle?>(nil)

    private struct Handle: @unchecked Sendable {
        // SAFETY: names a thread, for pthread_join(3) by the thread that takes it out of the mutex. A pointer on
        // Darwin.
        let raw: pthread_t
    }

    /// Starts. A walk every 20 ms, so that it does not become the load.
    init(_ path: FilePath, limit: Int64) {
        let handle = try? Threads.start { [self] in
            while !isOver.load(ordering: .relaxed) {
                var sum = FileTree.allocatedBytes(path)
                for _ in 0..<4 where sum > limit { sum = min(sum, FileTree.allocatedBytes(path)) }
                highest.max(sum, ordering: .relaxed)
                count.wrappingAdd(1, ordering: .relaxed)
                usleep(20_000)
            }
        }
        let started = handle.map { Handle(raw: $0) }
        thread.withLock { $0 = started }
    }

    /// Walks done.
    var walks: Int { count.load(ordering: .relaxed) }

    /// The highest sum so far.
    var highestBytes: Int64 { highest.load(ordering: .relaxed) }

    /// Ends it; returns the highest sum. Idempotent.
    func stop() -> Int64 {
        isOver.store(true, ordering: .relaxed)
        let handle = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let handle { pthread_join(handle.raw, nil) }
        return highestBytes
    }
}
