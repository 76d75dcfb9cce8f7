#if os(Linux) && !LARDER_VISIBLE_LOCKS
    import CLarder

    /// Stands in for `Synchronization.Mutex` in the modules of the engine, on Linux.
    ///
    /// There `Mutex` notes which thread holds it, by a number that the thread looks up once. The thread that called
    /// fork(2) has another number in the child, where a lock that two threads want then ends the process. This one does
    /// not know who holds it, and takes as long: one atomic exchange where no one waits. futex(2).
    ///
    /// The value is not in the lock itself, as that of `Mutex` is: `Synchronization._Cell` in a struct of this module
    /// is not always destroyed by Swift 6.3, depending on the order in which files are compiled.
    public struct ForkSafeMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        // SAFETY: `value` is touched only between `clarder_lock` and `clarder_unlock`, which alone touch `word`.
        @usableFromInline
        struct Storage: ~Copyable {
            /// First, so that its address is that of the storage.
            @usableFromInline var word: UInt32 = 0
            @usableFromInline var value: Value

            @inlinable
            init(_ value: consuming sending Value) { self.value = value }
        }

        @usableFromInline let storage: UnsafeMutablePointer<Storage>

        @inlinable var word: UnsafeMutablePointer<UInt32> {
            UnsafeMutableRawPointer(storage).assumingMemoryBound(to: UInt32.self)
        }

        /// Guards `initialValue`.
        @inlinable
        public init(_ initialValue: consuming sending Value) {
            storage = .allocate(capacity: 1)
            storage.initialize(to: Storage(initialValue))
        }

        @inlinable
        deinit {
            storage.deinitialize(count: 1)
            storage.deallocate()
        }

        /// As `Mutex.withLock(_:)`.
        @inlinable
        public borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            clarder_lock(word)
            defer { clarder_unlock(word) }
            return try body(&storage.pointee.value)
        }

        /// As `Mutex.withLockIfAvailable(_:)`.
        @inlinable
        public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result? {
            guard clarder_try_lock(word) else { return nil }
            defer { clarder_unlock(word) }
            return try body(&storage.pointee.value)
        }
    }
#endif
