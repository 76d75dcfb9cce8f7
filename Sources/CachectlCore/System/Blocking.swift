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
        // poll(2) waits by a clock that no one sets. Dispatch's semaphores wait by the date on Linux: after a step back
        // no signal was heard for as long as that went.
        let isOver = Completion()
        Task {
            let value = await task.result
            result.withLock { $0 = value }
            isOver.signal()
        }
        while !isOver.wait(milliseconds: 100) {
            if Interruption.hasCome { task.cancel() }
        }
        return result.withLock { $0 } ?? .failure(CancellationError())
    }
}

/// Wakes a thread that waits, once.
private final class Completion: Sendable {
    private let isOver = Atomic<Bool>(false)
    /// The ends of a pipe; -1 where no descriptor is left: then the thread notices with its next look.
    private let ends: (read: Int32, write: Int32)

    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends where end >= 0 { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        self.ends = (ends[0], ends[1])
    }

    deinit { for end in [ends.read, ends.write] where end >= 0 { close(end) } }

    func signal() {
        isOver.store(true, ordering: .releasing)
        var byte: UInt8 = 0
        _ = write(ends.write, &byte, 1)
    }

    /// False after the time.
    func wait(milliseconds: Int32) -> Bool {
        var end = pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)
        return isOver.load(ordering: .acquiring) || poll(&end, 1, milliseconds) > 0
    }
}
