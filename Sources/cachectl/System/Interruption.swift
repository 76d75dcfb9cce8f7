import Synchronization

/// SIGINT and SIGTERM as a flag that long commands look at, so that they end in order.
///
/// The second signal ends the program at once, should the first not be heeded.
enum Interruption {
    private static let flag = Atomic<Bool>(false)

    /// Starts to listen. Before, and in commands that never call it, a signal ends the program.
    static func listen() {
        // Made now: the handler must not be the first to touch it.
        _ = flag.load(ordering: .relaxed)
        var action = sigaction()
        #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = { _ in Interruption.flag.store(true, ordering: .relaxed) }
        #else
            action.__sigaction_handler.sa_handler = { _ in Interruption.flag.store(true, ordering: .relaxed) }
        #endif
        action.sa_flags = Int32(bitPattern: UInt32(truncatingIfNeeded: SA_RESETHAND)) | SA_RESTART
        sigaction(SIGINT, &action, nil)
        sigaction(SIGTERM, &action, nil)
    }

    /// True once a signal has come.
    static var hasCome: Bool { flag.load(ordering: .relaxed) }

    /// Throws once a signal has come.
    static func check() throws {
        if hasCome { throw CommandError.interrupted }
    }
}
