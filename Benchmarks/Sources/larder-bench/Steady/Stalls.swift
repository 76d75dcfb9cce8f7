import Larder
import Synchronization
import SystemPackage

/// The longest puts and hits at a full budget, and what the process did meanwhile: two threads put, two get what was
/// put lately.
struct Stalls {
    var size: BodySize
    var budgetBytes: Int64
    /// How many times the budget is put before it counts as steady.
    var factor: Int
    var seconds: Double
    var seed: UInt64

    /// One kind of operation.
    struct Figures: Codable, Sendable {
        var operations = 0
        /// Nanoseconds.
        var longest: UInt64 = 0
        var p999: UInt64 = 0
        /// Of operations of more than 5 ms: how many there were by what the process did, and the longest of each.
        var causes: [String: Cause] = [:]

        struct Cause: Codable, Sendable {
            var count = 0
            var longest: UInt64 = 0
        }
    }

    /// An operation that took long.
    private struct Slow {
        var isPut: Bool
        var start: UInt64
        var end: UInt64
        var thread: Int
    }

    /// Operations that take longer than this, in nanoseconds, have a cause.
    private static let long: UInt64 = 5_000_000

    func run(in directory: WorkDirectory) throws -> (puts: Figures, hits: Figures) {
        let bodies = Bodies(size, seed: seed)
        let worth = max(16, Int(budgetBytes) / size.mean)
        let path = try directory.make("stalls")
        defer { FileTree.remove(path) }
        let peer = try LarderPeer(path, PeerOptions(budgetBytes: budgetBytes))
        _ = try Driver(peer, bodies).put(0..<worth * factor)
        let watch = ThreadWatch()
        let next = Atomic<Int>(worth * factor)
        let slow = Mutex<[Slow]>([])
        let tallies = Mutex<[Tally]>([.recording, .recording])
        let end = Ticks.now() + UInt64(seconds * 1e9)
        try Threads.run(4) { number in
            let isPut = number < 2
            let thread = ThreadWatch.current()
            let scratch = Scratch(size.longest)
            var generator = Generator(seed: seed &+ UInt64(number))
            var tally = Tally.recording
            while Ticks.now() < end {
                try Interruption.check()
                let index: Int
                if isPut {
                    index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                } else {
                    // What half of the budget holds is there.
                    index = next.load(ordering: .relaxed) - 64 - Int(generator.next() % UInt64(max(1, worth / 2)))
                }
                let name = peer.name(index)
                let body = isPut ? bodies.body(index) : []
                let start = Ticks.now()
                if isPut { try peer.put(body, name) } else { _ = try peer.get(name, scratch) }
                let took = Ticks.now() - start
                tally.operations += 1
                tally.latency?.record(took)
                if took > Self.long {
                    slow.withLock { $0.append(Slow(isPut: isPut, start: start, end: start + took, thread: thread)) }
                }
            }
            let result = tally
            tallies.withLock { $0[isPut ? 0 : 1].merge(result) }
        }
        watch.stop()
        try peer.close()
        return tallies.withLock { tallies in
            slow.withLock { slow in
                (
                    figures(tallies[0], slow.filter(\.isPut), watch),
                    figures(tallies[1], slow.filter { !$0.isPut }, watch)
                )
            }
        }
    }

    private func figures(_ tally: Tally, _ slow: [Slow], _ watch: ThreadWatch) -> Figures {
        var figures = Figures()
        figures.operations = tally.operations
        if let percentiles = Percentiles(tally) {
            figures.longest = percentiles.max
            figures.p999 = percentiles.p999
        }
        for operation in slow {
            let cause = watch.cause(from: operation.start, to: operation.end, caller: operation.thread)
            figures.causes[cause, default: Figures.Cause()].count += 1
            let longest = figures.causes[cause]?.longest ?? 0
            figures.causes[cause]?.longest = max(longest, operation.end - operation.start)
        }
        return figures
    }
}
