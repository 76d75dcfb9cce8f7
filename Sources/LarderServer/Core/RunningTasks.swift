import LarderHTTP
import Locks

/// The tasks that work for connections, so that a server can wait for them before its event loops go.
final class RunningTasks: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Starts a task; nil, having started nothing, once ``close()`` was called.
    /// - Parameter executor: runs the task, and the loads that it starts.
    func start(
        on executor: LoopExecutor? = nil, _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never>? {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.count += 1 }
            return !state.isClosed
        }
        guard isOpen else { return nil }
        return Task(executorPreference: executor) {
            await LoadExecution.$executor.withValue(executor) { await body() }
            self.ended()
        }
    }

    /// Whether none is running.
    var isEmpty: Bool { state.withLock { $0.count == 0 } }

    private func ended() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Lets no task start any more; returns when none is running.
    func close() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                state.isClosed = true
                if state.count == 0 { return true }
                state.waiting.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }
}
