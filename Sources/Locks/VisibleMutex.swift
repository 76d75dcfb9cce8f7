#if LARDER_VISIBLE_LOCKS
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// Stands in for `Synchronization.Mutex` in builds with ThreadSanitizer (`tools/sanitize`), and in no others.
    ///
    /// On Linux `Mutex` is made of atomics and futexes inside `libswiftSynchronization`, which is not instrumented: the
    /// sanitizer sees no order between two holders and reports what they guard as races. It knows `pthread_mutex_lock`.
    public final class VisibleMutex<Value: ~Copyable>: @unchecked Sendable {
        // SAFETY: `value` is touched only between `pthread_mutex_lock` and `pthread_mutex_unlock`.
        private let value: UnsafeMutablePointer<Value>
        private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

        /// Guards `initialValue`.
        public init(_ initialValue: consuming sending Value) {
            value = .allocate(capacity: 1)
            value.initialize(to: initialValue)
            pthread_mutex_init(lock, nil)
        }

        deinit {
            pthread_mutex_destroy(lock)
            lock.deallocate()
            value.deinitialize(count: 1)
            value.deallocate()
        }

        /// As `Mutex.withLock(_:)`.
        public func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }

        /// As `Mutex.withLockIfAvailable(_:)`.
        public func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result? {
            guard pthread_mutex_trylock(lock) == 0 else { return nil }
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }
    }
#endif
