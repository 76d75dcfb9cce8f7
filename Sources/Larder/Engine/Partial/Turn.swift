/// A lock that is held for as long as disks take. A thread waits for it, and a task that waits holds no thread.
final class Turn: @unchecked Sendable {
    // SAFETY: every variable is touched only under `monitor`.
    private let monitor = Monitor()
    private var isTaken = false
    private var tasks: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` once no other thread has the turn.
    func locked<R>(_ body: () throws -> R) rethrows -> R {
        monitor.locked {
            while isTaken { monitor.wait() }
            isTaken = true
        }
        defer { leave() }
        return try body()
    }

    /// Runs `body` on a thread of a pool once no other thread has the turn.
    ///
    /// The turn is taken by the thread that runs `body`, not before: a task that had it while it waits for a thread of
    /// the pool could wait for threads that wait for the turn.
    func locked<R: Sendable>(on pool: IOPool, _ body: @escaping @Sendable () throws -> R) async throws -> R {
        while true {
            await waitUntilFree()
            if let result = try await pool.run({ [self] in try ifFree(body) }) { return result }
        }
    }

    private func waitUntilFree() async {
        await withCheckedContinuation { continuation in
            let isFree = monitor.locked {
                if isTaken { tasks.append(continuation) }
                return !isTaken
            }
            if isFree { continuation.resume() }
        }
    }

    /// Runs `body`, or returns nil if another thread has the turn.
    private func ifFree<R>(_ body: () throws -> R) rethrows -> R? {
        let isMine = monitor.locked {
            defer { isTaken = true }
            return !isTaken
        }
        guard isMine else { return nil }
        defer { leave() }
        return try body()
    }

    private func leave() {
        let due = monitor.locked {
            isTaken = false
            monitor.signal()
            defer { tasks = [] }
            return tasks
        }
        for task in due { task.resume() }
    }
}
