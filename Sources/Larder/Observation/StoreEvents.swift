/// The events of a store, in the order in which they happened.
private struct StoreEvents: AsyncSequence, Sendable {
    private let subscription: Subscription

    init(_ buffer: EventBuffer, _ audience: Audience) {
        subscription = Subscription(buffer: buffer, audience: audience)
    }

    func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: Subscription

        func next() async -> StoreEvent? { await subscription.buffer.next() }

        /// As above. The actor is not used: no state of it is touched.
        func next(isolation actor: isolated (any Actor)?) async -> StoreEvent? { await subscription.buffer.next() }
    }

    /// Ends with the last of the sequence and its iterators.
    fileprivate final class Subscription: Sendable {
        let buffer: EventBuffer
        private let audience: Audience

        init(buffer: EventBuffer, audience: Audience) {
            self.buffer = buffer
            self.audience = audience
        }

        deinit { audience.remove(buffer) }
    }
}

extension Store {
    /// The events in the store from now on, as this process causes or sees them.
    ///
    ///     Task {
    ///         for await event in store.events() {
    ///             if case .displaced(let key, _, let reason) = event { print("displaced", key, reason) }
    ///         }
    ///     }
    ///
    /// Events are kept for the reader from this call on. The store never waits for it: when `capacity` events are
    /// unread, the oldest is dropped, and the reader gets `StoreEvent.missed(count:)` in the place of those dropped.
    /// `stored` and `removed` come when the readers of this process see the change, those of a batch when it is
    /// committed, `displaced` after its commit.
    ///
    /// Without a reader an event costs one test of a flag. Several stores of one path in this process have the same
    /// events. Safe from any thread.
    /// - Parameter capacity: the most events to keep; 1 or more. Default: 256.
    /// - Returns: the events in order, for one reader: two iterators of one sequence would share them. It ends when
    ///   this store is closed and the remaining events have been read, and in a cancelled task. Dropping the sequence
    ///   and its iterator ends the subscription.
    public func events(buffering capacity: Int = 256) -> some AsyncSequence<StoreEvent, Never> & Sendable {
        let buffer = EventBuffer(handle: handle, capacity: max(1, capacity))
        engine.audience.add(buffer)
        if isOver { buffer.end() }
        return StoreEvents(buffer, engine.audience)
    }
}

extension EnginePart {
    /// Tells the readers of events, not the observers, what a call did. The event is made only if there is a reader.
    @inline(__always)
    func tell(_ event: @autoclosure () -> StoreEvent) {
        if audience.hasReaders { audience.tellReaders(event()) }
    }
}
