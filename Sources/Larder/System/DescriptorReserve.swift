import Locks

/// Descriptors that a server leaves free for the libraries under it.
///
/// On Linux Swift's tasks run on libdispatch, which looks into /proc each second and ends the process if it gets no
/// descriptor for that. The system gives the lowest number that is free, so a file or a socket with a number beyond the
/// reserve tells that all others are taken: it is closed, and counts as one that there was no descriptor for (EMFILE).
package enum DescriptorReserve {
    /// The first number of the reserve. `Int32.max`: there is none, as in a program that only embeds a store.
    private static let first = Atomic<Int32>(.max)

    /// Keeps a reserve from now on: 32 descriptors, or a quarter of the limit where that is less.
    /// - Parameter limit: how many descriptors the process may have.
    package static func keep(of limit: Int) {
        first.store(Int32(clamping: limit - min(32, limit / 4)), ordering: .relaxed)
    }

    /// True if this is not one of the reserve.
    package static func allows(_ descriptor: Int32) -> Bool { descriptor < first.load(ordering: .relaxed) }

    /// The descriptor; -1 with `errno` set if it is one of the reserve, which is closed then.
    static func checked(_ descriptor: Int32) -> Int32 {
        if allows(descriptor) { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
