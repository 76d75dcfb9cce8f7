import Locks

/// SIGINT, SIGTERM and SIGHUP as a flag that long commands check, so that they can clean up.
///
/// The first signal lets a command clean up. timeout(1) sends two at once, to the program and to its group, and people
/// press the keys twice, so only the fourth signal exits at once, or any signal after `endAtNext`.
package enum Interruption {
    private static let signals = Atomic<Int>(0)
    private static let isLast = Atomic<Bool>(false)

    /// Installs the handlers, once: a program that takes SIGHUP for something else does so after this. Until then, and
    /// in commands that never call this, a signal ends the program. What nohup(1) starts does not hear of SIGHUP.
    package static func listen() { installed }

    private static let installed: Void = {
        // Initialise them now: a signal handler must not.
        _ = signals.load(ordering: .relaxed)
        _ = isLast.load(ordering: .relaxed)
        for number in [SIGINT, SIGTERM, SIGHUP] where number != SIGHUP || !SignalHandler.isIgnored(number) {
            SignalHandler.install(number) { _ in Interruption.note() }
        }
    }()

    /// Makes the next signal exit at once, for a command that is shutting down, which may take long.
    package static func endAtNext() { isLast.store(true, ordering: .relaxed) }

    // Runs in a signal handler: nothing here allocates or locks. signal-safety(7)
    private static func note() {
        let count = signals.wrappingAdd(1, ordering: .relaxed).newValue
        if count > 3 || isLast.load(ordering: .relaxed) { _exit(ExitStatus.interrupted.rawValue) }
        SignalHandler.wake()
    }

    /// True after a signal.
    package static var hasCome: Bool { signals.load(ordering: .relaxed) > 0 }

    /// Throws after a signal.
    package static func check() throws {
        if hasCome { throw CommandError.interrupted }
    }
}
