import Locks

/// Bytes of bodies that wait in memory, of many holders. Safe to use from any thread.
package final class HeldBytes: Sendable {
    private let total = Atomic<Int>(0)

    /// Makes one with a count of zero.
    package init() {}

    /// The number of bytes held now.
    package var count: Int { total.load(ordering: .relaxed) }

    /// The share of one holder; zero after it is released.
    package final class Share: Sendable {
        private let all: HeldBytes
        private let own = Atomic<Int>(0)

        /// Makes a holder without bytes.
        package init(of all: HeldBytes) { self.all = all }

        deinit { set(0) }

        /// Sets the number of bytes that the holder has now.
        package func set(_ count: Int) {
            let change = count - own.exchange(count, ordering: .relaxed)
            if change != 0 { all.total.add(change, ordering: .relaxed) }
        }
    }
}
