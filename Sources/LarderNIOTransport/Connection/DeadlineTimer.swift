import NIOCore

/// A time limit that is reset often and rarely fires: one scheduled task serves many of them.
// SAFETY: all that changes is touched on `loop` only; each method asserts that.
final class DeadlineTimer: @unchecked Sendable {
    private let loop: any EventLoop
    private let action: @Sendable () -> Void
    private var deadline: NIODeadline?
    private var scheduled: Scheduled<Void>?
    private var scheduledFor = NIODeadline.distantFuture

    /// - Parameter action: called when a deadline passes, on the event loop.
    init(_ loop: any EventLoop, action: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Sets the time limit from now; nil for none.
    func set(_ amount: TimeAmount?) {
        loop.assertInEventLoop()
        deadline = amount.map { .now() + $0 }
        guard let deadline, scheduled == nil || deadline < scheduledFor else { return }
        schedule(deadline)
    }

    /// Ends the timer permanently.
    func cancel() {
        loop.assertInEventLoop()
        deadline = nil
        scheduled?.cancel()
        scheduled = nil
    }

    private func schedule(_ time: NIODeadline) {
        scheduled?.cancel()
        scheduledFor = time
        scheduled = loop.scheduleTask(deadline: time) { self.fire() }
    }

    private func fire() {
        loop.assertInEventLoop()
        scheduled = nil
        guard let deadline else { return }
        guard deadline <= .now() else { return schedule(deadline) }
        self.deadline = nil
        action()
    }
}
