import Failpoints

/// A thread outside Swift's cooperative pool, which must not block. The commands of `cachectl` also use it.
package final class WorkerThread: @unchecked Sendable {
    // SAFETY: `handle` is written once before the object is shared and read by `join` only.
    #if canImport(Darwin)
        private var handle: pthread_t?
    #else
        private var handle = pthread_t()
    #endif

    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts `body` on a new thread. Throws `io` if the system has no thread left. pthread_create(3).
    package init(_ body: @escaping @Sendable () -> Void) throws(LarderError) {
        if case .failure(let number)? = injectedFault("pthread_create", at: "") {
            throw .system("pthread_create", number, path: nil)
        }
        let context = Unmanaged.passRetained(Start(body))
        FirstRounds.expectThread()
        let code = pthread_create(
            &handle, nil,
            { context in
                FirstRounds.beginThread()
                defer { FirstRounds.endThread() }
                #if canImport(Darwin)
                    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                #else
                    guard let context else { return nil }
                    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                #endif
                start.body()
                return nil
            }, context.toOpaque())
        if code != 0 {
            context.release()
            FirstRounds.missThread()
            throw .system("pthread_create", code, path: nil)
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
}
