import Larder
import Synchronization
import SystemPackage

/// Mixed load at a full budget from several threads for some minutes. Every byte read is compared with what was put,
/// the invariants are checked while it runs and at the end, and the directory is walked all the while: it must never
/// take more than the budget.
struct StressTest {
    var minutes: Double
    var threads: Int
    var budgetBytes: Int64
    var size: BodySize
    var seed: UInt64
    var report: @Sendable (String) -> Void

    /// Returns the violations; empty if there were none.
    func run(in directory: WorkDirectory) throws -> [String] {
        let path = try directory.make("stress")
        let budget = Budget(bytes: ByteCount(budgetBytes))
        var configuration = Configuration(budget: budget)
        let size = size
        // Three times what fits, so that a third of the keys is in the store at any time.
        let keys = max(threads * 16, Int(budgetBytes) / size.mean * 3)
        let load = StressLoad(keys: keys, bodies: Bodies(size, seed: seed))
        configuration.observer = { event in
            switch event {
            case .damaged(let digest, let reason): load.fail("\(digest) was found damaged: \(reason)")
            case .commitFailed(let error): load.fail("a commit failed: \(error)")
            default: break
            }
        }
        let store = try Store(at: path, configuration)
        let sampler = BudgetSampler(path, limit: budgetBytes)
        let end = Ticks.now() + UInt64(minutes * 60e9)
        let watch = try Threads.start { watchOver(store, load, sampler, until: end) }
        do {
            try Threads.run(threads) { try work($0, store, load, until: end) }
        } catch {
            pthread_join(watch, nil)
            _ = sampler.stop()
            try? store.close()
            throw error
        }
        pthread_join(watch, nil)
        // Closed and opened again, the store has to be just as whole.
        try check(store, load, "at the end")
        try store.close()
        let again = try Store(at: path)
        try check(again, load, "opened again")
        for key in stride(from: 0, to: keys, by: 7) { try load.get(again, key, lends: key % 2 == 0) }
        try again.close()
        let highest = sampler.stop()
        if highest > budgetBytes {
            load.fail("the store took \(highest) bytes of disk, over its budget of \(budgetBytes)")
        }
        say(load, sampler, "end")
        return load.failed
    }

    /// A thread's load: gets of any key; puts and removals of its own keys.
    private func work(_ number: Int, _ store: Store, _ load: StressLoad, until end: UInt64) throws {
        var generator = Generator(seed: seed &+ UInt64(number) &* 7919)
        let keys = load.finished.count
        let own = keys / threads
        while Ticks.now() < end, load.failed.isEmpty {
            try Interruption.check()
            for _ in 0..<64 {
                let random = generator.next()
                let key = Int(generator.next() % UInt64(own)) * threads + number
                switch random % 1000 {
                case 0..<600:
                    try load.get(store, Int(generator.next() % UInt64(own * threads)), lends: random & 1024 == 0)
                case 600..<960: try load.put(store, key, durable: false)
                case 960..<962: try load.put(store, key, durable: true)
                default: try load.remove(store, key)
                }
            }
        }
    }

    /// Checks repeatedly, twice a second at most, and reports progress every ten seconds.
    private func watchOver(_ store: Store, _ load: StressLoad, _ sampler: BudgetSampler, until end: UInt64) {
        var rounds = 0
        var told = Ticks.now()
        while Ticks.now() < end, load.failed.isEmpty, !Interruption.hasCome {
            do {
                // Bodies are hashed every fifth time: the threads compare those they read anyway.
                let report = try store.check(readingBodies: rounds % 5 == 4)
                note(report, load, "while it ran")
                let allocated = try store.statistics().allocatedBytes.bytes
                if allocated > budgetBytes { load.fail("statistics() says \(allocated) bytes, over \(budgetBytes)") }
                if rounds % 20 == 19 { try store.collect() }
            } catch {
                load.fail("a check failed: \(error)")
            }
            rounds += 1
            if Ticks.now() - told > 10_000_000_000 {
                told = Ticks.now()
                say(load, sampler, "\(rounds) checks")
            }
            usleep(500_000)
        }
    }

    private func check(_ store: Store, _ load: StressLoad, _ moment: String) throws {
        note(try store.check(), load, moment)
    }

    private func note(_ report: CheckReport, _ load: StressLoad, _ moment: String) {
        for violation in report.violations { load.fail("\(violation) (\(moment))") }
    }

    private func say(_ load: StressLoad, _ sampler: BudgetSampler, _ moment: String) {
        func count(_ value: borrowing Atomic<Int>) -> String { Render.count(value.load(ordering: .relaxed)) }
        report(
            "\(moment): \(count(load.gets)) gets, \(count(load.hits)) hits, \(count(load.puts)) puts, "
                + "\(count(load.removals)) removals, \(ByteCount(load.comparedBytes.load(ordering: .relaxed))) compared, "
                + "at most \(ByteCount(sampler.highestBytes)) on disk in \(Render.count(sampler.walks)) walks")
    }
}
