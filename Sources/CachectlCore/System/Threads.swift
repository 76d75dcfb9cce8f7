import Larder
import Locks

/// The threads of commands. They may block on disks and locks; the threads of Swift's cooperative pool must not.
package enum Threads {
    /// Starts `body` on a thread of its own. Throws ``CommandError`` if the system has no thread left.
    package static func start(_ body: @escaping @Sendable () -> Void) throws -> WorkerThread {
        do {
            return try WorkerThread(body)
        } catch {
            throw CommandError(.temporary, "cannot start another thread", cause: error)
        }
    }

    /// Runs `body(0)` to `body(count - 1)`, each on its own thread, and waits for all. Throws the first error.
    static func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
        let failure = FailureBox()
        var threads: [WorkerThread] = []
        for number in 0..<count {
            do {
                threads.append(try start { do { try body(number) } catch { failure.note(error) } })
            } catch {
                failure.note(error)
            }
        }
        for thread in threads { thread.join() }
        if let error = failure.first { throw error }
    }
}

/// The first error of several threads.
package final class FailureBox: Sendable {
    private let error = Mutex<(any Error)?>(nil)

    package init() {}

    /// Keeps the error if it is the first.
    package func note(_ new: any Error) { error.withLock { if $0 == nil { $0 = new } } }

    /// The first error.
    package var first: (any Error)? { error.withLock { $0 } }
}
