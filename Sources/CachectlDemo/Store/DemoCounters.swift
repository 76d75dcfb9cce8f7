import Locks

/// The counters of the demo's threads.
final class DemoCounters: Sendable {
    private let hitCount = Atomic<Int>(0)
    private let missCount = Atomic<Int>(0)
    private let hitByteCount = Atomic<Int64>(0)
    private let storedCount = Atomic<Int>(0)
    private let storedByteCount = Atomic<Int64>(0)
    private let wrongCount = Atomic<Int>(0)
    private let skippedCount = Atomic<Int>(0)

    /// A hit whose bytes were compared with their digest.
    func hit(_ bytes: Int, isRight: Bool) {
        hitCount.wrappingAdd(1, ordering: .relaxed)
        hitByteCount.wrappingAdd(Int64(bytes), ordering: .relaxed)
        if !isRight { wrongCount.wrappingAdd(1, ordering: .relaxed) }
    }

    func miss() { missCount.wrappingAdd(1, ordering: .relaxed) }

    func stored(_ bytes: Int) {
        storedCount.wrappingAdd(1, ordering: .relaxed)
        storedByteCount.wrappingAdd(Int64(bytes), ordering: .relaxed)
    }

    /// A file is unreadable, or too large for the budget.
    func skipped() { skippedCount.wrappingAdd(1, ordering: .relaxed) }

    /// The current values.
    var snapshot: Snapshot {
        Snapshot(
            hits: hitCount.load(ordering: .relaxed), misses: missCount.load(ordering: .relaxed),
            hitBytes: hitByteCount.load(ordering: .relaxed), stored: storedCount.load(ordering: .relaxed),
            storedBytes: storedByteCount.load(ordering: .relaxed), wrong: wrongCount.load(ordering: .relaxed),
            skipped: skippedCount.load(ordering: .relaxed))
    }

    /// The values at one moment.
    struct Snapshot: Sendable {
        let hits: Int
        let misses: Int
        let hitBytes: Int64
        let stored: Int
        let storedBytes: Int64
        let wrong: Int
        let skipped: Int
    }
}
