import Synchronization
import SystemPackage

/// A thread that may block on disks and locks; the threads of Swift's cooperative pool must not.
package final class Thread: @unchecked Sendable {
    // SAFETY: `handle` is written before the object is shared, and read by `join` only.
    #if canImport(Darwin)
        private var handle: pthread_t?
    #else
        private var handle = pthread_t()
    #endif

    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts `body`. pthread_create(3).
    package init(_ body: @escaping @Sendable () -> Void) throws {
        let start = Unmanaged.passRetained(Start(body))
        let code = pthread_create(
            &handle, nil,
            { context in
                #if canImport(Darwin)
                    Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body()
                #else
                    if let context { Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body() }
                #endif
                return nil
            }, start.toOpaque())
        if code != 0 {
            start.release()
            throw CommandError(.temporary, "cannot start another thread", cause: Errno(rawValue: code))
        }
    }

    /// Waits for the thread to end. Call it once.
    package func join() {
        #if canImport(Darwin)
            if let handle { pthread_join(handle, nil) }
        #else
            pthread_join(handle, nil)
        #endif
    }

    /// Runs `body(0)` to `body(count - 1)`, each on its own thread, and waits for all. Throws the first error.
    static func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
        let failure = FailureBox()
        var threads: [Thread] = []
        for number in 0..<count {
            do {
                threads.append(try Thread { do { try body(number) } catch { failure.note(error) } })
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
