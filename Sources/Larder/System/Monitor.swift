/// A lock with a condition, for threads that wait for each other. Everything else uses `Mutex`.
final class Monitor: @unchecked Sendable {
    // SAFETY: both objects are made for sharing between threads and live at a fixed address until `deinit`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
            pthread_cond_init(condition, nil)
        #else
            // A wall clock that is set back must not make a waiter wait for longer.
            var attributes = pthread_condattr_t()
            pthread_condattr_init(&attributes)
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
            pthread_cond_init(condition, &attributes)
            pthread_condattr_destroy(&attributes)
        #endif
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` under the lock.
    @inline(__always)
    func locked<R>(_ body: () throws -> R) rethrows -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Waits for a signal; call under the lock, in a loop that tests what is waited for.
    func wait() { pthread_cond_wait(condition, mutex) }

    /// Waits for a signal or until `seconds` have passed.
    func wait(seconds: Double) {
        var time = timespec()
        #if canImport(Darwin)
            let nanoseconds = Int64(max(0, seconds) * 1e9)
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
            let nanoseconds = Int64(time.tv_nsec) + Int64(max(0, seconds) * 1e9)
        #endif
        time.tv_sec += time_t(nanoseconds / 1_000_000_000)
        time.tv_nsec = Int(nanoseconds % 1_000_000_000)
        #if canImport(Darwin)
            pthread_cond_timedwait_relative_np(condition, mutex, &time)
        #else
            pthread_cond_timedwait(condition, mutex, &time)
        #endif
    }

    /// Wakes every waiter.
    func signal() { pthread_cond_broadcast(condition) }
}
