import NIOCore

/// A time limit that is set anew all the time and hardly ever passes: one scheduled task serves many of them.
// SAFETY: used on its event loop only.
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
        deadline = amount.map { .now() + $0 }
        guard let deadline, scheduled == nil || deadline < scheduledFor else { return }
        schedule(deadline)
    }

    /// Ends it for good.
    func cancel() {
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
        scheduled = nil
        guard let deadline else { return }
        guard deadline <= .now() else { return schedule(deadline) }
        self.deadline = nil
        action()
    }
}
