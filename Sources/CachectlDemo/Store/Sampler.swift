import CachectlCore
import Synchronization
import SystemPackage

/// Counts again and again what the store's directory takes, while others write to it: the budget has to hold at every
/// moment, not only at the end.
final class Sampler: Sendable {
    private let path: FilePath
    private let budget: Int64
    private let stop = Atomic<Bool>(false)
    private let highest = Atomic<Int64>(0)
    private let samples = Atomic<Int>(0)
    private let thread = Mutex<Thread?>(nil)

    /// - Parameter budget: what no count should be over.
    init(_ path: FilePath, budget: Int64) {
        self.path = path
        self.budget = budget
    }

    /// A walk is not of one moment: a file that goes after it was counted and one that comes before the walk is there both
    /// count, so the sum can be over what was ever there, the more the slower the walk. A count over the budget is
    /// taken again, and the smallest of five counts.
    private func sample() throws -> Int64 {
        var bytes = try Recount.allocated(path)
        for _ in 0..<4 where bytes > budget { bytes = min(bytes, try Recount.allocated(path)) }
        return bytes
    }

    /// Starts to count, every half second.
    func start() throws {
        let running = try Thread { [self] in
            while !stop.load(ordering: .relaxed) {
                if let bytes = try? sample() {
                    highest.max(bytes, ordering: .relaxed)
                    samples.wrappingAdd(1, ordering: .relaxed)
                }
                for _ in 0..<10 where !stop.load(ordering: .relaxed) { usleep(50_000) }
            }
        }
        thread.withLock { $0 = running }
    }

    /// Ends the counting. Returns the largest count, and how many there were.
    func finish() -> (highest: Int64, samples: Int) {
        stop.store(true, ordering: .relaxed)
        thread.withLock {
            $0?.join()
            $0 = nil
        }
        return (highest.load(ordering: .relaxed), samples.load(ordering: .relaxed))
    }
}
