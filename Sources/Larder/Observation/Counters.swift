import CLarder

/// Where an engine counts: its area of the counters. No reference that threads would have to share.
struct Counters: @unchecked Sendable {
    // SAFETY: the memory is that of the engine's `CounterFile`, and lives as long as the engine. All access is through
    // C atomics; `clarder_count_alone` is for words that one thread at a time changes, as said where it is called.
    private let area: UnsafeMutablePointer<UInt64>
    /// True if no other process counts in the area.
    private let isSole: Bool

    init(area: UnsafeMutablePointer<UInt64>, isSole: Bool) {
        self.area = area
        self.isSole = isSole
    }

    @inline(__always)
    private func word(_ word: CounterLayout.Lane, _ lane: Int) -> UnsafeMutablePointer<UInt64> {
        area + ((lane & (CounterLayout.laneCount - 1)) &* CounterLayout.laneWords &+ word.rawValue)
    }

    // MARK: Lookups

    /// Counts a hit in the index. Call it while stripe `stripe` of the engine's `TouchBuffer` is locked.
    @inline(__always)
    func addHit(_ hit: Hit, stripe: Int) {
        if isSole {
            clarder_count_alone(word(.hits, stripe), hit.count)
            clarder_count_alone(word(.bytesRead, stripe), hit.bytes)
        } else {
            clarder_count_add(word(.hits, stripe), hit.count)
            clarder_count_add(word(.bytesRead, stripe), hit.bytes)
        }
    }

    /// Counts hits for which nothing is locked.
    func addHits(_ count: UInt64 = 1, bytes: UInt64) {
        let lane = ThreadNumber.current
        clarder_count_add(word(.otherHits, lane), count)
        clarder_count_add(word(.otherBytesRead, lane), bytes)
    }

    /// Counts lookups that found nothing.
    @inline(__always)
    func addMisses(_ count: UInt64 = 1) { clarder_count_add(word(.misses, ThreadNumber.current), count) }

    /// True for one in 64 lookups of a thread: the two readings of the clock would cost more than the counting.
    @inline(__always)
    var isLookupMeasured: Bool {
        let lane = ThreadNumber.current
        let count =
            clarder_count(word(.hits, lane)) &+ clarder_count(word(.otherHits, lane))
            &+ clarder_count(word(.misses, lane))
        return count & 63 == 0
    }

    // MARK: Everything else

    /// Adds to a counter.
    func add(_ scalar: CounterLayout.Scalar, _ count: UInt64 = 1) {
        clarder_count_add(area + (CounterLayout.scalarsAt + scalar.rawValue), count)
    }

    /// Notes how long something took.
    func note(_ timing: CounterLayout.Timing, nanoseconds: UInt64) {
        let sum = area + CounterLayout.timing(timing)
        clarder_count_add(sum, nanoseconds)
        clarder_count_add(sum + 1 + CounterLayout.bucket(nanoseconds), 1)
    }

    /// A hit: one, or none for a lookup that is a step of another.
    struct Hit {
        let count: UInt64
        let bytes: UInt64

        @inline(__always)
        init(_ length: UInt64, isCounted: Bool) {
            count = isCounted ? 1 : 0
            bytes = isCounted ? length : 0
        }
    }
}
