import Synchronization
import SystemPackage

/// Counts again and again what the store's directory takes, while others write to it: the budget has to hold at every
/// moment, not only at the end.
final class Sampler: Sendable {
    private let path: FilePath
    private let stop = Atomic<Bool>(false)
    private let highest = Atomic<Int64>(0)
    private let samples = Atomic<Int>(0)
    private let thread = Mutex<Thread?>(nil)

    init(_ path: FilePath) { self.path = path }

    /// Starts to count, every half second.
    func start() throws {
        let running = try Thread { [self] in
            while !stop.load(ordering: .relaxed) {
                if let bytes = try? Recount.allocated(path) {
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
