import Locks

/// The events that one subscriber has yet to read: at most `capacity`, the oldest are dropped and counted.
final class EventBuffer: Sendable {
    fileprivate struct State {
        /// From `first` on; those before it are gone.
        var events: [StoreEvent?] = []
        var first = 0
        var missed = 0
        var isOver = false
        var reader: CheckedContinuation<StoreEvent?, Never>?
    }

    /// The store whose events it has.
    let handle: UInt32
    private let capacity: Int
    private let state = EngineMutex(State())

    init(handle: UInt32, capacity: Int) {
        self.handle = handle
        self.capacity = capacity
    }

    /// Hands an event to the reader, or keeps it.
    func add(_ event: StoreEvent) {
        let reader = state.withLock { state -> CheckedContinuation<StoreEvent?, Never>? in
            if state.isOver { return nil }
            if let reader = state.reader {
                state.reader = nil
                return reader
            }
            state.keep(event, capacity)
            return nil
        }
        reader?.resume(returning: event)
    }

    /// No further events; the reader gets those that are left, and then nil.
    func end() {
        let reader = state.withLock { state in
            state.isOver = true
            return state.reader.take()
        }
        reader?.resume(returning: nil)
    }

    /// The next event; nil at the end, and in a cancelled task. For one task at a time: a second one gets nil.
    func next() async -> StoreEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> StoreEvent?? in
                    // Under the lock, so that a cancellation comes before this look, or finds the reader.
                    if Task.isCancelled { return .some(nil) }
                    if let event = state.take() { return event }
                    if state.isOver || state.reader != nil { return .some(nil) }
                    state.reader = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.reader.take() }?.resume(returning: nil)
        }
    }
}

extension EventBuffer.State {
    fileprivate mutating func keep(_ event: StoreEvent, _ capacity: Int) {
        if events.count - first == capacity {
            drop()
            missed += 1
        }
        events.append(event)
    }

    /// What was missed comes before what is left.
    fileprivate mutating func take() -> StoreEvent? {
        if missed > 0 {
            defer { missed = 0 }
            return .missed(count: missed)
        }
        guard first < events.count, let event = events[first] else { return nil }
        drop()
        return event
    }

    private mutating func drop() {
        events[first] = nil
        first += 1
        // Now and then, so that each event is moved about once.
        if first >= 64, first * 2 >= events.count {
            events.removeFirst(first)
            first = 0
        }
    }
}
