import Synchronization

/// System threads: the measured code blocks, which the threads behind Swift's tasks must not do.
enum Threads {
    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body(0)` to `body(count - 1)` on separate threads and waits for all; throws the first error.
    static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
        let failure = Mutex<(any Error)?>(nil)
        let shared = Shared(body, note: { error in failure.withLock { if $0 == nil { $0 = error } } })
        var handles: [pthread_t] = []
        for number in 0..<count {
            do { handles.append(try start { shared.run(number) }) } catch { shared.note(error) }
        }
        for handle in handles { pthread_join(handle, nil) }
        if let error = failure.withLock({ $0 }) { throw error }
    }

    private final class Shared: Sendable {
        let body: @Sendable (Int) throws -> Void
        let note: @Sendable (any Error) -> Void

        init(_ body: @escaping @Sendable (Int) throws -> Void, note: @escaping @Sendable (any Error) -> Void) {
            self.body = body
            self.note = note
        }

        func run(_ number: Int) { do { try body(number) } catch { note(error) } }
    }

    /// Starts `body` on a new thread, which has to be joined. pthread_create(3).
    static func start(_ body: @escaping @Sendable () -> Void) throws -> pthread_t {
        let context = Unmanaged.passRetained(Start(body)).toOpaque()
        #if canImport(Darwin)
            var handle: pthread_t?
        #else
            var handle = pthread_t()
        #endif
        let code = pthread_create(
            &handle, nil,
            { context in
                #if canImport(Darwin)
                    Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body()
                #else
                    if let context { Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body() }
                #endif
                return nil
            }, context)
        if code != 0 {
            Unmanaged<Start>.fromOpaque(context).release()
            throw BenchError.system("pthread_create", "", code: code)
        }
        #if canImport(Darwin)
            guard let handle else { throw BenchError("pthread_create gave no thread") }
        #endif
        return handle
    }
}
