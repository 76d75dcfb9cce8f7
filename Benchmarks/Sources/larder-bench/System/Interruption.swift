import Synchronization

/// SIGINT and SIGTERM as a flag that every loop reads, so that temporary stores are removed before the program ends.
/// The third signal ends it immediately.
enum Interruption {
    private static let signals = Atomic<Int>(0)

    /// Starts to listen.
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
    }

    // Runs in a signal handler: nothing here allocates or locks. signal-safety(7)
    private static func note() {
        if signals.wrappingAdd(1, ordering: .relaxed).newValue > 2 { _exit(130) }
    }

    /// True once a signal has come.
    static var hasCome: Bool { signals.load(ordering: .relaxed) > 0 }

    /// Throws once a signal has come.
    static func check() throws {
        if hasCome { throw BenchError("interrupted; the temporary stores were removed") }
    }
}
