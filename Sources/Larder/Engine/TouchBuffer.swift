import Synchronization

/// Uses of entries that the index does not know yet: collected by readers, written with the next commit.
///
/// A use is the entry's stamp, which names it uniquely until the next touch moves it, and the uptime. Striped, so that
/// readers on different threads do not meet. Bounded: past the limit the oldest uses of a stripe are lost, which only
/// makes their entries look a little older.
final class TouchBuffer: Sendable {
    struct Use {
        var stamp: UInt64
        var uptime: UInt64
    }

    /// Uses of one entry between two commits.
    struct Touch: Sendable {
        let stamp: UInt64
        var hits: UInt32
        var lastUse: UInt64
    }

    private final class Stripe: Sendable {
        let uses = Mutex<[Use]>([])
        // Keeps two stripes off one cache line.
        private let padding = (0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64)
    }

    /// Uses a stripe holds at most: 128 KiB of memory.
    static let stripeLimit = 8192
    /// Uses in one stripe at which the committer is woken early.
    static let wakeCount = 2048

    private let stripes = (0..<16).map { _ in Stripe() }
    private let dirty = Atomic<Bool>(false)

    /// Notes a use. True if the committer should be woken.
    @inline(__always)
    func note(stamp: UInt64, uptime: UInt64) -> Bool {
        let stripe = stripes[ThreadNumber.current & 15]
        let count = stripe.uses.withLock { uses in
            if uses.count >= Self.stripeLimit { Self.compact(&uses) }
            uses.append(Use(stamp: stamp, uptime: uptime))
            return uses.count
        }
        if count == 1 { dirty.store(true, ordering: .relaxed) }
        return count == Self.wakeCount
    }

    /// True if there is anything to drain.
    var isDirty: Bool { dirty.load(ordering: .relaxed) }

    /// Takes all uses, one touch an entry, in the order of the last use of each.
    func drain() -> [Touch] {
        guard dirty.exchange(false, ordering: .acquiringAndReleasing) else { return [] }
        var touches: [UInt64: Touch] = [:]
        for stripe in stripes {
            let uses = stripe.uses.withLock { uses in
                let taken = uses
                uses.removeAll(keepingCapacity: true)
                return taken
            }
            for use in uses {
                if var touch = touches[use.stamp] {
                    touch.hits += 1
                    touch.lastUse = max(touch.lastUse, use.uptime)
                    touches[use.stamp] = touch
                } else {
                    touches[use.stamp] = Touch(stamp: use.stamp, hits: 1, lastUse: use.uptime)
                }
            }
        }
        return touches.values.sorted { $0.lastUse < $1.lastUse }
    }

    /// Keeps the latest use of each entry, and of those the younger half if that is still too many.
    private static func compact(_ uses: inout [Use]) {
        var seen = Set<UInt64>()
        var kept: [Use] = []
        for use in uses.reversed() where seen.insert(use.stamp).inserted { kept.append(use) }
        kept.reverse()
        uses = kept.count > stripeLimit / 2 ? Array(kept.suffix(stripeLimit / 2)) : kept
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
