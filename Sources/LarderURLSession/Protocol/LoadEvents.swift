import Foundation
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An event that a load reports to the session.
enum LoadEvent: Sendable {
    case response(HTTPURLResponse)
    case data(Data)
    /// On Apple's systems: the session makes a new protocol for the request.
    case redirect(URLRequest, HTTPURLResponse)
    case finished
    case failed(URLError)
}

/// Events on their way from the task of a load to the queue of the session. The task waits until the session has taken
/// what was there, so that no more than one piece is in memory.
final class LoadEvents: Sendable {
    private struct State {
        var events: [LoadEvent] = []
        var waiter: CheckedContinuation<Void, Never>?
        /// The session was woken, and has not taken the events yet. It is not woken twice: on Linux a task that is
        /// resumed in the moment after its end fails, or ends the process.
        var isWoken = false
        var isClosed = false
        /// Nothing waits for the session from now on.
        var isEnding = false
    }

    private let state = Mutex(State())

    /// Hands events over, and returns when they were taken, or will never be.
    func put(_ events: [LoadEvent], _ wake: () -> Void) async {
        await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
            let (wakes, waits) = state.withLock { state in
                if state.isClosed { return (false, false) }
                state.events += events
                if !state.isEnding { state.waiter = waiter }
                defer { state.isWoken = true }
                return (!state.isWoken, !state.isEnding)
            }
            if wakes { wake() }
            if !waits { waiter.resume() }
        }
    }

    func take() -> [LoadEvent] {
        state.withLock { state in
            state.isWoken = false
            defer { state.events = [] }
            return state.events
        }
    }

    /// The events that were taken are delivered: the task continues.
    func delivered() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.events.isEmpty else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// What is still put waits for the session, but the one who puts it does not.
    func stopWaiting() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isEnding = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Nothing is delivered from now on.
    func close() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isClosed = true
            state.events = []
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
