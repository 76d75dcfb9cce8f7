import Synchronization

/// The address space that the environments of this process have reserved.
///
/// A process has 128 TiB of it (47 bits). Each environment begins with a map that nearly every index fits in, and grows
/// it when necessary (`Environment.remap`), so that a process with thousands of them does not run out. When most is
/// taken, an environment gets a 64th of the rest.
enum AddressSpace {
    private static let reserved = Atomic<Int>(0)

    #if LARDER_VISIBLE_LOCKS
        // ThreadSanitizer takes most of it for itself.
        private static let limit = 1 << 39
    #else
        private static let limit = 96 << 40
    #endif
    /// The smallest reservation.
    static let least = 1 << 30

    /// Reserves up to `wanted` bytes; returns how many.
    static func reserve(_ wanted: Int) -> Int {
        while true {
            let current = reserved.load(ordering: .relaxed)
            let share = max(least, (limit - current) / 64 / least * least)
            let size = min(wanted, share)
            if reserved.compareExchange(expected: current, desired: current + size, ordering: .relaxed).exchanged {
                return size
            }
        }
    }

    static func giveBack(_ size: Int) { reserved.subtract(size, ordering: .relaxed) }
}
