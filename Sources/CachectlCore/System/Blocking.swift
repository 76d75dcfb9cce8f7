import Dispatch
import Locks

/// Runs asynchronous code from the main thread, which may block.
package enum Blocking {
    /// Waits for `body`. SIGINT and SIGTERM cancel it and the command.
    package static func run<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
        let result = outcome(of: body)
        try Interruption.check()
        return try result.get()
    }

    /// Waits for `body`, which runs until SIGINT or SIGTERM cancels it. That is its normal end.
    package static func untilInterrupted(_ body: @escaping @Sendable () async throws -> Void) throws {
        try outcome(of: body).get()
    }

    /// Waits for `body`, and ignores signals.
    package static func wait(_ body: @escaping @Sendable () async -> Void) {
        let isOver = DispatchSemaphore(value: 0)
        Task {
            await body()
            isOver.signal()
        }
        isOver.wait()
    }

    private static func outcome<R: Sendable>(
        of body: @escaping @Sendable () async throws -> R
    ) -> Result<R, any Error> {
        let task = Task { try await body() }
        let result = Mutex<Result<R, any Error>?>(nil)
        let isOver = WakePipe()
        Task {
            let value = await task.result
            result.withLock { $0 = value }
            isOver.wake()
        }
        while true {
            if Interruption.hasCome { task.cancel() }
            SignalHandler.arrived.yield()
            if let result = result.withLock({ $0 }) { return result }
            WakePipe.wait(for: [isOver, SignalHandler.pipe])
        }
    }
}
