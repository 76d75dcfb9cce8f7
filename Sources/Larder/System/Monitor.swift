/// A lock with conditions, for threads that wait for each other. Everything else uses `EngineMutex`.
///
/// Waiters of one condition are woken together; those who wait for different things use different ones, or each signal
/// would wake them all to look and wait again.
final class Monitor: @unchecked Sendable {
    // SAFETY: the objects are made for sharing between threads and live at a fixed address until `deinit`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let conditions: UnsafeMutableBufferPointer<pthread_cond_t>

    /// - Parameter conditions: how many; they are called 0, 1, ...
    init(conditions count: Int = 1) {
        conditions = .allocate(capacity: count)
        pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
            for index in conditions.indices { pthread_cond_init(&conditions[index], nil) }
        #else
            // A wall clock that is set back must not make a waiter wait for longer.
            var attributes = pthread_condattr_t()
            pthread_condattr_init(&attributes)
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
            for index in conditions.indices { pthread_cond_init(&conditions[index], &attributes) }
            pthread_condattr_destroy(&attributes)
        #endif
    }

    deinit {
        for index in conditions.indices { pthread_cond_destroy(&conditions[index]) }
        pthread_mutex_destroy(mutex)
        conditions.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` under the lock.
    @inline(__always)
    func locked<R>(_ body: () throws -> R) rethrows -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Takes the lock for a code path that cannot be a closure: the handlers of fork(2).
    func lock() { pthread_mutex_lock(mutex) }

    /// Gives the lock back, on the thread that took it, or on that thread's copy in a child of fork(2).
    func unlock() { pthread_mutex_unlock(mutex) }

    /// Waits for a signal; call under the lock, in a loop that tests what is waited for.
    func wait(_ condition: Int = 0) { FirstRounds.between { pthread_cond_wait(&conditions[condition], mutex) } }

    /// Waits for a signal or until `seconds` have passed.
    func wait(_ condition: Int = 0, seconds: Double) {
        var time = timespec()
        #if canImport(Darwin)
            let nanoseconds = Int64(max(0, seconds) * 1e9)
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
            let nanoseconds = Int64(time.tv_nsec) + Int64(max(0, seconds) * 1e9)
        #endif
        time.tv_sec += time_t(nanoseconds / 1_000_000_000)
        time.tv_nsec = Int(nanoseconds % 1_000_000_000)
        FirstRounds.between {
            #if canImport(Darwin)
                pthread_cond_timedwait_relative_np(&conditions[condition], mutex, &time)
            #else
                pthread_cond_timedwait(&conditions[condition], mutex, &time)
            #endif
        }
    }

    /// Wakes every waiter of a condition.
    func signal(_ condition: Int = 0) { pthread_cond_broadcast(&conditions[condition]) }
}
