import Foundation
import Locks

/// Holds tasks and threads up until a test opens it. It stays open once it was opened. Safe to use from any thread.
public final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// Makes a closed latch.
    public init() {}

    /// Whether it was opened.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Lets every task and thread through, now and later.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for resume in waiting { resume() }
    }

    /// Waits until the latch is open; a cancelled task waits, too.
    public func wait() async {
        await withCheckedContinuation { continuation in whenOpen { continuation.resume() } }
    }

    /// Holds the calling thread until the latch is open.
    public func block() {
        let isOpen = DispatchSemaphore(value: 0)
        whenOpen { isOpen.signal() }
        isOpen.wait()
    }

    private func whenOpen(_ resume: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(resume) }
            return state.isOpen
        }
        if isOpen { resume() }
    }
}
