import LarderHTTP
import Locks
import NIOCore

/// Runs tasks on an event loop while there is one, and on the threads of all tasks afterwards.
///
/// What a task does for a connection is then on the thread of the connection, and wakes no other. Nothing that such a
/// task calls may wait for a disk; the store has threads of its own for that.
final class LoopExecutor: LoadExecutor {
    private struct State {
        /// The event loop is about to go.
        var isClosed = false
        var loads = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let eventLoop: any EventLoop
    private let state = Mutex(State())

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isQueued = state.withLock { state in
            if !state.isClosed { eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) } }
            return !state.isClosed
        }
        if !isQueued { globalConcurrentExecutor.enqueue(job) }
    }

    func loadBegan() { state.withLock { $0.loads += 1 } }

    func loadEnded() {
        let waiting = state.withLock { state in
            state.loads -= 1
            guard state.loads == 0 else { return [] as [CheckedContinuation<Void, Never>] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Whether loads run here.
    var hasLoads: Bool { state.withLock { $0.loads > 0 } }

    /// Returns when none runs here.
    func loadsEnd() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.loads > 0 { state.waiting.append(continuation) }
                return state.loads == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Uses the event loop no more; returns when it has done what it was given.
    func close() async {
        state.withLock { $0.isClosed = true }
        try? await eventLoop.submit {}.get()
    }
}
