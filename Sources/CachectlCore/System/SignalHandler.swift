/// Installs signal handlers.
package enum SignalHandler {
    /// Wakes the thread that waits in `Blocking`. Every handler does so.
    static let pipe = WakePipe()

    /// Has an element after signals came, while a thread waits in `Blocking`: one for all of them.
    package static let arrivals = stream.stream
    static let arrived = stream.continuation
    private static let stream = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// True if the signal does nothing: sigaction(2), SIG_IGN.
    package static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        #if canImport(Darwin)
            let handler = action.__sigaction_u.__sa_handler
        #else
            let handler = action.__sigaction_handler.sa_handler
        #endif
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Tells the thread that waits of a signal.
    package static func wake() { pipe.wake() }

    /// Calls `handler` on a signal. It must neither allocate nor lock (signal-safety(7)), and ends with ``wake()``.
    package static func install(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
        // Initialise it now: a signal handler must not.
        _ = pipe
        var action = sigaction()
        #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = handler
        #else
            action.__sigaction_handler.sa_handler = handler
        #endif
        action.sa_flags = SA_RESTART
        sigaction(number, &action, nil)
        // The program may have inherited a mask that blocks it, for example from one that starts others from a dispatch
        // queue.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }
}
