/// Handlers of signals.
package enum SignalHandler {
    /// Has a signal call `handler`, which must neither allocate nor lock: signal-safety(7).
    package static func install(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
        var action = sigaction()
        #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = handler
        #else
            action.__sigaction_handler.sa_handler = handler
        #endif
        action.sa_flags = SA_RESTART
        sigaction(number, &action, nil)
        // Blocked signals are inherited, and programs that start others from a dispatch queue have them blocked.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }
}
