import Locks

/// Threads on which asynchronous callers wait for disks, so that the cooperative pool never does.
///
/// The pools serve every store of the process; their threads start with the first job and stay.
final class IOPool: Sendable, ProcessGlobal {
    // SAFETY (both): written only in a child of fork(2), by its only thread.
    /// For jobs that end soon: a piece of a body read or written, a put that waits for room in its batch.
    nonisolated(unsafe) private(set) static var shared = IOPool(threads: 2)

    /// For jobs whose time grows with the store or with a file of any length: collection, check, removal of a
    /// selection, a new budget, adoption, export, reclaim. Two of them make a third one wait, and nothing else.
    nonisolated(unsafe) private(set) static var long = IOPool(threads: 2)

    static func prepare() { _ = (shared, long) }

    static func rehearse() {
        var other = IOPool(threads: 2)
        replace(&other, with: IOPool(threads: 2)).release()
    }

    static func beginAgain() {
        replace(&shared, with: IOPool(threads: 2))
        replace(&long, with: IOPool(threads: 2))
    }

    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var started = false
    }

    private let threads: Int
    private let monitor = Monitor()
    private let state = EngineMutex(State())

    private let submitted = Atomic<Int>(0)

    init(threads: Int) { self.threads = threads }

    /// Jobs taken on since the process began.
    var jobCount: Int { submitted.load(ordering: .relaxed) }

    /// Runs `body` on a pool thread. The task's cancellation does not interrupt it.
    func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        // Through a lock, which ThreadSanitizer sees: of a continuation that is resumed before its task waits it does
        // not see that one comes after the other.
        let outcome = EngineMutex<Result<R, any Error>?>(nil)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            submit {
                let result = Result { try body() }
                outcome.withLock { $0 = result }
                continuation.resume()
            }
        }
        // It always is: the continuation is resumed after it was set.
        guard let result = outcome.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }

    /// Runs `job` on a pool thread, without anyone who waits for it.
    func submit(_ job: @escaping @Sendable () -> Void) {
        submitted.wrappingAdd(1, ordering: .relaxed)
        let isFirst = state.withLock { state in
            state.jobs.append(job)
            defer { state.started = true }
            return !state.started
        }
        if isFirst { start() }
        // A thread that has found no job waits by then. It would wait for the lock, were it woken under it.
        monitor.locked {}
        monitor.signal()
    }

    private func start() {
        var running = 0
        for _ in 0..<threads where (try? WorkerThread { [self] in work() }) != nil { running += 1 }
        // Without a single thread the jobs still have to end: run what there is here.
        if running == 0 {
            state.withLock { $0.started = false }
            while let job = take() { job() }
        }
    }

    private func take() -> (@Sendable () -> Void)? {
        state.withLock { $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }
    }

    private func work() {
        while true {
            var job: (@Sendable () -> Void)?
            monitor.locked {
                job = take()
                while job == nil {
                    monitor.wait()
                    job = take()
                }
            }
            job?()
        }
    }
}
