import Locks

/// Bytes of bodies that wait in memory, of many holders. Safe to use from any thread.
package final class HeldBytes: Sendable {
    private let total = Atomic<Int>(0)

    /// Makes one that counts none.
    package init() {}

    /// How many there are now.
    package var count: Int { total.load(ordering: .relaxed) }

    /// What one holder has of them; none once it is gone.
    package final class Share: Sendable {
        private let all: HeldBytes
        private let own = Atomic<Int>(0)

        /// Makes a holder of nothing.
        package init(of all: HeldBytes) { self.all = all }

        deinit { set(0) }

        /// Says how many bytes the holder has now.
        package func set(_ count: Int) {
            let change = count - own.exchange(count, ordering: .relaxed)
            if change != 0 { all.total.add(change, ordering: .relaxed) }
        }
    }
}
