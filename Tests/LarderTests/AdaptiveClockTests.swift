import SeededData
import Testing

@testable import Larder

/// The policy of the memory tier.
@Suite struct AdaptiveClockTests {
    @Test func itFindsWhatItHoldsWithinItsLimits() {
        var generator = SeededGenerator(seed: 5)
        var clock = AdaptiveClock<Int, Int>(capacity: 1000, count: 60)
        for step in 0..<50_000 {
            let key = Int.random(in: 0..<150, using: &generator)
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<60:
                if let found = clock.value(for: key) { #expect(found / 1_000_000 == key) }
            case 60..<97:
                // Some are too long to be taken in.
                let cost = Int.random(in: 0..<300, using: &generator)
                clock.insert(key * 1_000_000 + step, for: key, cost: cost)
                let found = clock.value(for: key)
                #expect(found == (cost <= clock.capacity / 4 ? key * 1_000_000 + step : nil))
            case 97: clock.remove(key)
            case 98: clock.resize(Int.random(in: 0..<1000, using: &generator))
            default:
                if Int.random(in: 0..<100, using: &generator) == 0 { clock.removeAll() }
                clock.resize(1000)
            }
            #expect(clock.cost <= clock.capacity && clock.count <= 60)
        }
    }

    /// What is asked for again stays while a hundred times the capacity is asked for once.
    @Test func aScanDoesNotFlushIt() {
        var clock = AdaptiveClock<Int, Int>(capacity: 1000, count: .max)
        for _ in 0..<3 { for key in 0..<50 { ask(&clock, key, 10) } }
        for key in 1000..<11_000 { ask(&clock, key, 10) }
        #expect((0..<50).count { clock.value(for: $0) != nil } == 50)
        // The rest of the room is that of the scan's last ones.
        #expect(clock.value(for: 10_999) != nil && clock.count == 100)
    }

    /// The other way: what was used often gives way when no one asks for it any more.
    @Test func itFollowsAChangeOfWhatIsAskedFor() {
        var clock = AdaptiveClock<Int, Int>(capacity: 1000, count: .max)
        for _ in 0..<10 { for key in 0..<100 { ask(&clock, key, 10) } }
        for _ in 0..<10 { for key in 200..<280 { ask(&clock, key, 10) } }
        #expect((200..<280).count { clock.value(for: $0) != nil } == 80)
    }

    /// More hits than the least recently used of the same size gets, where scans come between.
    @Test func itKeepsMoreHitsThanLeastRecentlyUsedBesideScans() {
        var generator = SeededGenerator(seed: 9)
        var clock = AdaptiveClock<Int, Int>(capacity: 500, count: .max)
        var recent: [Int] = []
        var (hits, recentHits) = (0, 0)
        var scan = 100_000
        for step in 0..<30_000 {
            // A third of the time in runs of keys that come once.
            let isScan = step / 500 % 3 == 2
            let key: Int
            if isScan {
                key = scan
                scan += 1
            } else {
                // The product of two is nearer to 0 than either.
                key = Int(
                    Double.random(in: 0..<1, using: &generator) * Double.random(in: 0..<1, using: &generator) * 200)
            }
            if ask(&clock, key, 10) { hits += 1 }
            if let place = recent.firstIndex(of: key) {
                recentHits += 1
                recent.remove(at: place)
            } else if recent.count == 50 {
                recent.removeFirst()
            }
            recent.append(key)
        }
        #expect(hits > recentHits)
    }

    @discardableResult
    private func ask(_ clock: inout AdaptiveClock<Int, Int>, _ key: Int, _ cost: Int) -> Bool {
        if clock.value(for: key) != nil { return true }
        clock.insert(key, for: key, cost: cost)
        return false
    }
}
