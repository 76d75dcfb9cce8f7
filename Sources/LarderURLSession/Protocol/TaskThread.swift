import Foundation
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking

    /// The thread that calls tasks of URLSession on Linux. Their methods wait for the queue of the session, and the
    /// threads of the cooperative pool must not: dispatch may need them to run that queue.
    enum TaskThread {
        private struct State {
            var work: [@Sendable () -> Void] = []
            var isRunning = false
        }

        private static let state = Mutex(State())
        private static let isWork = DispatchSemaphore(value: 0)

        /// Runs `body` on the thread, behind what was handed over earlier.
        static func run(_ body: @escaping @Sendable () -> Void) {
            let isRunning = state.withLock { state in
                state.work.append(body)
                defer { state.isRunning = true }
                return state.isRunning
            }
            if !isRunning { Thread.detachNewThread { work() } }
            isWork.signal()
        }

        private static func work() {
            while true {
                isWork.wait()
                state.withLock { $0.work.isEmpty ? nil : $0.work.removeFirst() }?()
            }
        }
    }
#endif
