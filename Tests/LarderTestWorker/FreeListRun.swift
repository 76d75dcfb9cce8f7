import Foundation
import Larder
import SeededData
import SystemPackage

/// What LMDB's list of free pages costs in a large store: batches of bodies of many pages, all in the index, at a full
/// budget of `gibibytes` in which most of what is free is in pieces.
struct FreeListRun {
    let store: FilePath
    let gibibytes: Int
    let seed: UInt64

    func run() throws {
        var generator = SeededGenerator(seed: seed)
        var configuration = Configuration(budget: Budget(bytes: .gibibytes(Int64(gibibytes))))
        configuration.logger.logLevel = .critical
        let store = try Store(at: store, configuration)
        let budget = gibibytes << 30
        var written = 0
        var number = 0
        // A tenth, then a budget's worth, then two more.
        for goal in [budget / 10, budget, 3 * budget] {
            let began = DispatchTime.now().uptimeNanoseconds
            let before = written
            while written < goal {
                written += try put(&number, &generator, store, .relaxed)
            }
            try store.flush()
            let seconds = Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9
            var times: [Double] = []
            for _ in 0..<300 {
                let start = DispatchTime.now().uptimeNanoseconds
                written += try put(&number, &generator, store, .durable)
                times.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1e6)
            }
            times.sort()
            let rate = Double(written - before) / seconds / 1e6
            say(
                String(
                    format:
                        "after %.1f of the budget: %.0f MB/s of puts; a durable put: median %.2f ms, 99 %% %.2f ms, most %.2f ms",
                    Double(written) / Double(budget), rate, times[150], times[297], times[299]))
        }
        let began = DispatchTime.now().uptimeNanoseconds
        try store.collect()
        say(String(format: "gc: %.1f s", Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9))
        try store.close()
    }

    /// Bodies of 4 KiB to 256 KiB, so that what goes leaves holes that what comes does not fit.
    private func put(
        _ number: inout Int, _ generator: inout SeededGenerator, _ store: Store, _ durability: Durability
    ) throws -> Int {
        let length = 4096 << Int(generator.next() % 7)
        number += 1
        try store.put(
            makeBody(name: UInt64(number), seed: seed, length: length), for: Key("f\(generator.next() % 1_000_000)"),
            PutOptions(durability: durability))
        return length
    }
}
