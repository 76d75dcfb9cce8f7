import CachectlCore
import Larder
import Locks
import SystemPackage

/// Measures the size of the store's directory repeatedly while others write to it: the budget must hold at every
/// moment, not only at the end.
final class Sampler: Sendable {
    private let path: FilePath
    private let budget: Int64
    private let stop = Atomic<Bool>(false)
    private let highest = Atomic<Int64>(0)
    private let samples = Atomic<Int>(0)
    private let thread = Mutex<WorkerThread?>(nil)

    /// - Parameter budget: the size that no measurement should exceed.
    init(_ path: FilePath, budget: Int64) {
        self.path = path
        self.budget = budget
    }

    /// A directory walk takes time: it may count a file that is then removed, and one that is created later, so the sum
    /// can exceed the real size at every moment. A result over the budget is therefore measured again; the smallest of
    /// five counts.
    private func sample() throws -> Int64 {
        var bytes = try Recount.allocated(path)
        for _ in 0..<4 where bytes > budget { bytes = min(bytes, try Recount.allocated(path)) }
        return bytes
    }

    /// Starts to measure every half second.
    func start() throws {
        let running = try Threads.start { [self] in
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

    /// Stops measuring.
    /// - Returns: the largest result, and the number of measurements.
    func finish() -> (highest: Int64, samples: Int) {
        stop.store(true, ordering: .relaxed)
        thread.withLock {
            $0?.join()
            $0 = nil
        }
        return (highest.load(ordering: .relaxed), samples.load(ordering: .relaxed))
    }
}
