/// When each of a series of operations began, and how long it took.
struct Samples: Sendable {
    /// Moments on the clock of `Ticks`, nanoseconds.
    var starts: [UInt64] = []
    /// Nanoseconds.
    var durations: [UInt64] = []

    /// The duration that `percent` percent of the operations did not exceed.
    func percentile(_ percent: Double) -> UInt64 {
        let sorted = durations.sorted()
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, Int((Double(sorted.count) * percent / 100).rounded(.up)) - 1)]
    }
}

/// Puts one after the other, and keeps the time of each.
enum PacedPuts {
    /// - Parameter pace: puts a second, each due at its own moment. Its time counts from then, so that a put that is
    ///   delayed by a slow one before it counts as slow, too. Nil: as fast as possible.
    static func run(_ peer: any Peer, _ bodies: Bodies, _ indices: Range<Int>, pace: Int?) throws -> Samples {
        try Interruption.check()
        let items = indices.map { (peer.name($0), bodies.body($0)) }
        var samples = Samples()
        samples.starts.reserveCapacity(items.count)
        samples.durations.reserveCapacity(items.count)
        let origin = Ticks.now()
        for (position, item) in items.enumerated() {
            var start = Ticks.now()
            if let pace {
                let due = origin + UInt64(position) * 1_000_000_000 / UInt64(pace)
                while start < due {
                    if due - start > 100_000 { usleep(UInt32((due - start) / 1000 - 60)) }
                    start = Ticks.now()
                }
                start = due
            }
            try peer.put(item.1, item.0)
            samples.starts.append(start)
            samples.durations.append(Ticks.now() - start)
        }
        try peer.settle()
        return samples
    }
}
