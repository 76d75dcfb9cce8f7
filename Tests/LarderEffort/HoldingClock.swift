import Foundation
import Larder
import Synchronization

/// The machine's clocks, which can hold all threads but one that ask for the time. The committer asks before anything
/// it does.
final class HoldingClock: StoreClock {
    private let system = SystemClock()
    private let isHolding = Atomic<Bool>(false)
    private let free = Atomic<UInt>(0)
    private let held = DispatchSemaphore(value: 0)

    /// Holds every other thread from its next question on, permanently; returns when the first of them is held.
    func hold() {
        free.store(Self.thread, ordering: .relaxed)
        isHolding.store(true, ordering: .releasing)
        held.wait()
    }

    func now() -> Timestamp {
        stop()
        return system.now()
    }

    func uptime() -> UInt64 {
        stop()
        return system.uptime()
    }

    private func stop() {
        guard isHolding.load(ordering: .acquiring), free.load(ordering: .relaxed) != Self.thread else { return }
        held.signal()
        while true { sleep(1_000) }
    }

    private static var thread: UInt {
        #if canImport(Darwin)
            UInt(bitPattern: pthread_self())
        #else
            UInt(pthread_self())
        #endif
    }
}
