import Locks

/// Uses of entries that the index does not know yet: collected by readers, written in batches by the committer.
///
/// A use is the entry's stamp, which names it uniquely until the next touch moves it, and the uptime. Striped, so that
/// readers on different threads do not meet. A hot entry takes one line however often it is hit. Bounded: past the
/// limit the oldest uses of a stripe are lost, which only makes their entries look a little older.
final class TouchBuffer: Sendable {
    private final class Stripe: Sendable {
        let table = EngineMutex(TouchTable())
        // Keeps two stripes off one cache line.
        private let padding = (0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64)
    }

    /// As many touches are written with any batch that is committed anyway: about a millisecond of work.
    static let smallCount = 1024
    /// More than that wait until this many nanoseconds have passed since the last time, so that a store that is read a
    /// lot does not spend its time on noting that it is read.
    static let interval: UInt64 = 1_000_000_000
    /// The same while entries are displaced, whose order the touches change.
    static let displacingInterval: UInt64 = 50_000_000

    private let stripes = (0..<16).map { _ in Stripe() }
    private let dirty = Atomic<Bool>(false)
    /// How many threads have taken touches that are not written yet.
    private let writers = Atomic<Int>(0)
    private let lastDrain = Atomic<UInt64>(0)
    /// Nanoseconds that writing many touches took lately.
    private let cost = Atomic<UInt64>(0)

    /// Notes a use, and counts it.
    @inline(__always)
    func note(stamp: UInt64, uptime: UInt64, _ hit: Counters.Hit, _ counters: Counters) {
        let stripe = ThreadNumber.current & 15
        let isFirst = stripes[stripe].table.withLock { table in
            table.note(stamp: stamp, uptime: uptime)
            counters.addHit(hit, stripe: stripe)
            return table.count == 1
        }
        if isFirst, !dirty.load(ordering: .relaxed) { dirty.store(true, ordering: .relaxed) }
    }

    /// True if there is anything that the index does not have.
    var isDirty: Bool { dirty.load(ordering: .acquiring) || writers.load(ordering: .acquiring) > 0 }

    /// True if the touches should go with a commit that is made at `uptime` anyway.
    func isDue(at uptime: UInt64, isDisplacing: Bool) -> Bool {
        guard dirty.load(ordering: .relaxed) else { return false }
        let elapsed = uptime &- lastDrain.load(ordering: .relaxed)
        // No more than a tenth of the time goes into it, and a half while the order decides what goes: in a store of a
        // million entries each touch copies two pages.
        let cost = cost.load(ordering: .relaxed)
        let least = isDisplacing ? max(Self.displacingInterval, cost) : max(Self.interval, cost &* 10)
        if elapsed >= least { return true }
        var count = 0
        for stripe in stripes {
            count += stripe.table.withLock { $0.count }
            if count > Self.smallCount { return false }
        }
        return true
    }

    /// Touches that were drained are written, or lost. Notes how long that took.
    func noteWritten(_ count: Int, in nanoseconds: UInt64) {
        if count > 0 { writers.wrappingSubtract(1, ordering: .releasing) }
        if count > Self.smallCount { cost.store(nanoseconds, ordering: .relaxed) }
    }

    /// Takes all touches, one an entry, in the order of the last use of each. Call `noteWritten(_:in:)` after it.
    func drain(at uptime: UInt64) -> [TouchTable.Line] {
        writers.wrappingAdd(1, ordering: .acquiringAndReleasing)
        let taken = take(at: uptime)
        if taken.isEmpty { writers.wrappingSubtract(1, ordering: .releasing) }
        return taken
    }

    private func take(at uptime: UInt64) -> [TouchTable.Line] {
        guard dirty.exchange(false, ordering: .acquiringAndReleasing) else { return [] }
        lastDrain.store(uptime, ordering: .relaxed)
        var taken: [TouchTable.Line] = []
        var merged: TouchTable?
        for stripe in stripes {
            let lines = stripe.table.withLock { $0.take() }
            if lines.isEmpty { continue }
            if taken.isEmpty, merged == nil {
                taken = lines
                continue
            }
            // An entry hit by several threads is in several stripes.
            var table = merged ?? TouchTable(merging: taken)
            for line in lines { table.add(line) }
            merged = table
        }
        if var merged { taken = merged.take() }
        taken.sort { $0.lastUse < $1.lastUse }
        return taken
    }
}

/// A small number for the calling thread, for choosing a stripe.
enum ThreadNumber {
    @inline(__always)
    static var current: Int {
        #if canImport(Darwin)
            let identity = UInt(bitPattern: pthread_self())
        #else
            let identity = UInt(pthread_self())
        #endif
        return Int(truncatingIfNeeded: (identity &* 0x9E37_79B9_7F4A_7C15) >> 40)
    }
}
