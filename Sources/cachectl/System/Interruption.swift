import Synchronization

/// SIGINT and SIGTERM as a flag that long commands look at, so that they end in order.
///
/// The first lets a command end in order. timeout(1) sends two, to the program and to its group, and people press the keys
/// twice: only the fourth ends the program where it stands.
enum Interruption {
    private static let signals = Atomic<Int>(0)

    /// Starts to listen. Before, and in commands that never call it, a signal ends the program.
    static func listen() {
        // Made now: the handler must not be the first to touch it.
        _ = signals.load(ordering: .relaxed)
        var action = sigaction()
        #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = { _ in Interruption.note() }
        #else
            action.__sigaction_handler.sa_handler = { _ in Interruption.note() }
        #endif
        action.sa_flags = SA_RESTART
        sigaction(SIGINT, &action, nil)
        sigaction(SIGTERM, &action, nil)
        // Blocked signals are inherited, and programs that start others from a dispatch queue have them blocked.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    // Runs in a signal handler: nothing here allocates or locks. signal-safety(7)
    private static func note() {
        if signals.wrappingAdd(1, ordering: .relaxed).newValue > 3 { _exit(ExitStatus.interrupted.rawValue) }
    }

    /// True once a signal has come.
    static var hasCome: Bool { signals.load(ordering: .relaxed) > 0 }

    /// Throws once a signal has come.
    static func check() throws {
        if hasCome { throw CommandError.interrupted }
    }
}
