import Larder
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Whether this process is a child of fork(2) that inherited stores: the threads of their engine, and whatever locks
/// they held, stayed behind in the parent.
enum Fork {
    private static let isChild = Atomic<Bool>(false)

    /// Registers the handler, once. fork(2) runs it in the child, where it may do nothing that takes a lock.
    private static let isWatching: Bool =
        pthread_atfork(nil, nil, { Fork.isChild.store(true, ordering: .relaxed) }) == 0

    /// Has to come before the first store is opened.
    static func watch() throws(LarderError) {
        if !isWatching { throw LarderError(.noSpace, "pthread_atfork(3) has no memory for a handler") }
    }

    /// Throws `mustReopen` in a child of a process that had opened stores.
    @inline(__always)
    static func requireOpener() throws(LarderError) {
        if isChild.load(ordering: .relaxed) { throw inherited() }
    }

    private static func inherited() -> LarderError {
        LarderError(
            .mustReopen,
            "this process was forked from one that had opened a store, whose threads stayed behind: open stores after "
                + "the fork only, or call exec(3) in the child")
    }
}
