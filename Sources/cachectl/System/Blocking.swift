import Dispatch
import Synchronization

/// Runs asynchronous code from the main thread, which may wait.
enum Blocking {
    /// Waits for `body`, while a signal that asks for an end cancels it.
    static func run<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
        let result = Mutex<Result<R, any Error>?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        let task = Task {
            do {
                let value = try await body()
                result.withLock { $0 = .success(value) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            isOver.signal()
        }
        while isOver.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
            if Interruption.hasCome { task.cancel() }
        }
        guard let result = result.withLock({ $0 }) else { throw CommandError.interrupted }
        if Interruption.hasCome { throw CommandError.interrupted }
        return try result.get()
    }
}

extension Blocking {
    /// Waits for `body`, whatever signals come.
    static func wait<R: Sendable>(_ body: @escaping @Sendable () async -> R) throws {
        let isOver = DispatchSemaphore(value: 0)
        Task {
            _ = await body()
            isOver.signal()
        }
        isOver.wait()
    }

    /// Waits for `body`, which ends when it is cancelled; a signal that asks for an end cancels it, and that is no error.
    static func untilInterrupted(_ body: @escaping @Sendable () async throws -> Void) throws {
        let failure = Mutex<(any Error)?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        let task = Task {
            do { try await body() } catch { failure.withLock { $0 = error } }
            isOver.signal()
        }
        while isOver.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
            if Interruption.hasCome { task.cancel() }
        }
        if let error = failure.withLock({ $0 }) { throw error }
    }
}
