import NIOCore

extension EventLoop {
    /// Runs something when the event loop has looked at its sockets again. What `execute` gets runs before that,
    /// however much it is.
    func executeInNextTurn(_ body: @escaping @Sendable () -> Void) {
        // What is due when the sockets of this turn are done runs in this turn. So the time begins then, and is longer
        // than it takes to see that nothing more is due.
        execute { self.scheduleTask(in: .microseconds(20), body) }
    }
}
