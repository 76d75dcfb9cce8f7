import Foundation
import Locks

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// System threads, for tests of code that may block: tasks would share too few threads and starve each other.
public final class Threads: @unchecked Sendable {
    // SAFETY: `handles` is touched by the thread that made the object only; `errors` is under its mutex.
    private var handles: [pthread_t] = []
    private let errors = Mutex<[any Error]>([])

    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts `count` threads that run `body` with their number.
    public init(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) {
        for number in 0..<count {
            let start = Start { [self] in
                do {
                    try body(number)
                } catch {
                    errors.withLock { $0.append(error) }
                }
            }
            let context = Unmanaged.passRetained(start).toOpaque()
            #if canImport(Darwin)
                var handle: pthread_t?
                pthread_create(
                    &handle, nil,
                    { context in
                        Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body()
                        return nil
                    }, context)
                if let handle { handles.append(handle) }
            #else
                var handle = pthread_t()
                pthread_create(
                    &handle, nil,
                    { context in
                        if let context { Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body() }
                        return nil
                    }, context)
                handles.append(handle)
            #endif
        }
    }

    /// Waits for all of them; throws the first error one of them threw.
    public func join() throws {
        for handle in handles { pthread_join(handle, nil) }
        handles = []
        if let first = errors.withLock({ $0.first }) { throw first }
    }

    /// Runs `body` on `count` threads and waits for them.
    public static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
        try Threads(count, body).join()
    }
}

/// Counts across threads.
public final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    private let waiters = Atomic<Int>(0)
    private let hasChanged = NSCondition()

    /// At zero.
    public init() {}

    /// The count so far.
    public var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// Adds one; returns the new count.
    @discardableResult
    public func increment() -> Int { add(1) }

    /// Adds a number; returns the new count.
    @discardableResult
    public func add(_ number: Int) -> Int {
        let new = count.wrappingAdd(number, ordering: .sequentiallyConsistent).newValue
        // A thread that begins to wait after this look sees the new count.
        if waiters.load(ordering: .sequentiallyConsistent) > 0 {
            hasChanged.lock()
            hasChanged.broadcast()
            hasChanged.unlock()
        }
        return new
    }

    /// Holds the calling thread until the count has reached `number`.
    public func wait(for number: Int) {
        waiters.wrappingAdd(1, ordering: .sequentiallyConsistent)
        hasChanged.lock()
        while value < number { hasChanged.wait() }
        hasChanged.unlock()
        waiters.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }
}
