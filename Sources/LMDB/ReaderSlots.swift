import CLMDB
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Read transactions kept open in reset state, so that a lookup costs a renewal (about 50 ns) and no allocation.
///
/// A slot is taken with one compare-and-swap. Threads start looking at a slot of their own, so that two of them do not
/// meet: one lock for all was measured to give two threads no more throughput than one.
struct ReaderSlots: ~Copyable, Sendable {
    /// A power of two.
    static let count = 16

    private let slots = (0..<count).map { ReaderSlot(number: $0) }

    /// A slot for the calling thread, or nil if all are busy.
    @inline(__always)
    func acquire() -> ReaderSlot? {
        let mask = Self.count - 1
        let start = threadHash() & mask
        for offset in 0...mask {
            let slot = slots[(start + offset) & mask]
            if slot.tryLock() { return slot }
        }
        return nil
    }

    /// Waits for the reads under way and ends the transactions of every slot. The slots stay taken.
    func close() {
        for slot in slots {
            while !slot.tryLock() { sched_yield() }
            slot.close()
        }
    }

    @inline(__always)
    private func threadHash() -> Int {
        #if canImport(Darwin)
            let identity = UInt(bitPattern: pthread_self())
        #else
            let identity = UInt(pthread_self())
        #endif
        return Int(truncatingIfNeeded: (identity &* 0x9E37_79B9_7F4A_7C15) >> 40)
    }
}

/// One pooled read transaction.
@usableFromInline
final class ReaderSlot: @unchecked Sendable {
    // SAFETY: `transaction` is touched only between a successful `tryLock()` and `unlock()`.
    @usableFromInline let number: Int
    private let busy = Atomic<Bool>(false)
    var transaction: OpaquePointer?
    // Keeps two slots off one cache line.
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

    init(number: Int) { self.number = number }

    @inline(__always)
    func tryLock() -> Bool {
        busy.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged
    }

    @inline(__always)
    func unlock() {
        busy.store(false, ordering: .releasing)
    }

    func close() {
        if let transaction { mdb_txn_abort(transaction) }
        transaction = nil
    }
}
