import CachectlCore

/// The files that readers missed and writers should store. Bounded: when it is full, readers wait.
final class RequestQueue: @unchecked Sendable {
    // SAFETY: `waiting`, `queued` and `isClosed` are touched under `mutex` only; mutex and condition are made for
    // sharing and live at a fixed address until `deinit`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var waiting: [Int] = []
    private var queued: Set<Int> = []
    private var isClosed = false
    private let limit: Int

    /// - Parameter limit: the maximum number of waiting requests, 1 or more.
    init(limit: Int) {
        self.limit = limit
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Requests a file, unless it is requested already. Waits while the queue is full.
    func ask(for index: Int) {
        locked {
            while waiting.count >= limit, !isClosed { pthread_cond_wait(changed, mutex) }
            guard !isClosed, queued.insert(index).inserted else { return }
            waiting.append(index)
        }
    }

    /// The next request; nil after the queue is closed.
    func next() -> Int? {
        locked {
            while waiting.isEmpty, !isClosed { pthread_cond_wait(changed, mutex) }
            if isClosed { return nil }
            return waiting.removeFirst()
        }
    }

    /// Ends a request, successful or not.
    func done(_ index: Int) { locked { _ = queued.remove(index) } }

    /// Ends all waits.
    func close() { locked { isClosed = true } }

    private func locked<R>(_ body: () -> R) -> R {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return body()
    }
}
