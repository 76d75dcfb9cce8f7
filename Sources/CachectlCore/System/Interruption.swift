import Synchronization

/// SIGINT and SIGTERM as a flag that long commands look at, so that they end in order.
///
/// The first lets a command end in order. timeout(1) sends two at once, to the program and to its group, and people press the
/// keys twice: only the fourth ends the program where it stands, or any after `endAtNext`.
package enum Interruption {
    private static let signals = Atomic<Int>(0)
    private static let isLast = Atomic<Bool>(false)

    /// Starts to listen. Before, and in commands that never call it, a signal ends the program.
    package static func listen() {
        // Made now: the handler must not be the first to touch them.
        _ = signals.load(ordering: .relaxed)
        _ = isLast.load(ordering: .relaxed)
        for number in [SIGINT, SIGTERM] { SignalHandler.install(number) { _ in Interruption.note() } }
    }

    /// For a command that has said that it is ending, which may take long: one more signal ends the program where it stands.
    package static func endAtNext() { isLast.store(true, ordering: .relaxed) }

    // Runs in a signal handler: nothing here allocates or locks. signal-safety(7)
    private static func note() {
        let count = signals.wrappingAdd(1, ordering: .relaxed).newValue
        if count > 3 || isLast.load(ordering: .relaxed) { _exit(ExitStatus.interrupted.rawValue) }
    }

    /// True once a signal has come.
    package static var hasCome: Bool { signals.load(ordering: .relaxed) > 0 }

    /// Throws once a signal has come.
    package static func check() throws {
        if hasCome { throw CommandError.interrupted }
    }
}
