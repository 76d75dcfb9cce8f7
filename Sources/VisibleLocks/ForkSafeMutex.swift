#if os(Linux) && !LARDER_VISIBLE_LOCKS
    import CLarder
    import Synchronization

    /// Stands in for `Synchronization.Mutex` in the modules of the engine, on Linux.
    ///
    /// There `Mutex` notes which thread holds it, by a number that the thread looks up once. The thread that called
    /// fork(2) has another number in the child, where a lock that two threads want then ends the process. This one does
    /// not know who holds it, and takes as long: one atomic exchange where no one waits. futex(2).
    public struct ForkSafeMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        // SAFETY: `value` is touched only between `clarder_lock` and `clarder_unlock`; the word is atomic.
        @usableFromInline let word = _Cell<UInt32>(0)
        @usableFromInline let value: _Cell<Value>

        /// Guards `initialValue`.
        @inlinable
        public init(_ initialValue: consuming sending Value) { value = _Cell(initialValue) }

        /// As `Mutex.withLock(_:)`.
        @inlinable
        public borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            clarder_lock(word._address)
            defer { clarder_unlock(word._address) }
            return try body(&value._address.pointee)
        }

        /// As `Mutex.withLockIfAvailable(_:)`.
        @inlinable
        public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result? {
            guard clarder_try_lock(word._address) else { return nil }
            defer { clarder_unlock(word._address) }
            return try body(&value._address.pointee)
        }
    }
#endif
