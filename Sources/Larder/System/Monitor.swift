/// A lock with a condition, for threads that wait for each other. Everything else uses `Mutex`.
final class Monitor: @unchecked Sendable {
    // SAFETY: both objects are made for sharing between threads and live at a fixed address until `deinit`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
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
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        let nanoseconds = Int64(deadline.tv_nsec) + Int64(seconds * 1e9)
        deadline.tv_sec += time_t(nanoseconds / 1_000_000_000)
        deadline.tv_nsec = Int(nanoseconds % 1_000_000_000)
        pthread_cond_timedwait(condition, mutex, &deadline)
    }

    /// Wakes every waiter.
    func signal() { pthread_cond_broadcast(condition) }
}
