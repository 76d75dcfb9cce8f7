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
/// A slot is taken with one compare-and-swap. Each thread starts at a different slot, so that two of them do not
/// collide: with one lock for all, two threads were measured to have no more throughput than one.
///
/// Each transaction takes a row of the reader table, which all processes share, until the environment is closed. A
/// process takes more than one only while half of the table is free, so that its 1,024 rows are enough for all stores
/// that can be open.
struct ReaderSlots: ~Copyable, Sendable {
    /// A power of two.
    static let count = 16

    private let slots = (0..<count).map { ReaderSlot(number: $0) }
    /// Set while a thread needs all slots: otherwise a thread that reads continuously would take its own again and
    /// again.
    private let isWanted = Atomic<Bool>(false)
    /// Slots that have a transaction.
    private let pooled = Atomic<Int>(0)
    /// How often a further row was asked for and refused.
    private let refused = Atomic<UInt>(0)

    /// A slot for the calling thread, or nil if all are busy.
    @inline(__always)
    func acquire() -> ReaderSlot? {
        if isWanted.load(ordering: .relaxed) { return nil }
        let mask = Self.count - 1
        let start = threadHash() & mask
        for offset in 0...mask {
            let slot = slots[(start + offset) & mask]
            if slot.tryLock() { return slot }
        }
        return nil
    }

    /// A slot that has a transaction, for which it waits as long as a short read takes; nil if there is none.
    func acquirePooled() -> ReaderSlot? {
        for _ in 0..<1000 where pooled.load(ordering: .relaxed) > 0 {
            for slot in slots where slot.tryLock() {
                if slot.transaction != nil { return slot }
                slot.unlock()
            }
            sched_yield()
        }
        return nil
    }

    /// True if a slot without a transaction may get one. The caller holds a slot.
    func mayPoolMore(_ environment: OpaquePointer) -> Bool {
        if pooled.load(ordering: .relaxed) == 0 { return true }
        var info = MDB_envinfo()
        mdb_env_info(environment, &info)
        // The highest row that was ever used since the table was created.
        if info.me_numreaders < info.me_maxreaders / 2 { return true }
        // Rows may have been given back since. Reading all of them costs some 0.1 ms.
        if refused.wrappingAdd(1, ordering: .relaxed).oldValue & 1023 != 0 { return false }
        return readerRows(environment) < Int(info.me_maxreaders / 2)
    }

    /// A slot that had no transaction got one.
    func notePooled() { pooled.wrappingAdd(1, ordering: .relaxed) }

    /// Ends the transactions of all slots that are not in use; returns how many.
    func releaseIdle() -> Int {
        var count = 0
        for slot in slots where slot.tryLock() {
            if slot.transaction != nil { count += 1 }
            slot.close()
            slot.unlock()
        }
        pooled.wrappingSubtract(count, ordering: .relaxed)
        return count
    }

    /// Takes every slot, waiting for the reads in them for at most `steps` of 0.1 ms. False, and none taken, if one
    /// continues.
    func acquireAll(steps: Int) -> Bool {
        var waited = 0
        isWanted.store(true, ordering: .relaxed)
        for (position, slot) in slots.enumerated() {
            while !slot.tryLock() {
                if waited == steps {
                    for taken in slots[..<position] { taken.unlock() }
                    isWanted.store(false, ordering: .relaxed)
                    return false
                }
                waited += 1
                usleep(100)
            }
        }
        return true
    }

    /// Gives back what `acquireAll` took.
    func unlockAll() {
        for slot in slots { slot.unlock() }
        isWanted.store(false, ordering: .relaxed)
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

/// Rows of the reader table that have an owner. `mdb_reader_list`.
func readerRows(_ environment: OpaquePointer) -> Int {
    final class Lines { var count = 0 }
    let lines = Lines()
    _ = withExtendedLifetime(lines) {
        mdb_reader_list(
            environment,
            { _, context in
                guard let context else { return 0 }
                Unmanaged<Lines>.fromOpaque(context).takeUnretainedValue().count += 1
                return 0
            },
            Unmanaged.passUnretained(lines).toOpaque())
    }
    // The first line is a heading.
    return lines.count - 1
}

/// One pooled read transaction.
@usableFromInline
final class ReaderSlot: @unchecked Sendable {
    // SAFETY: `transaction` and `space` are touched only between a successful `tryLock()` and `unlock()`.
    @usableFromInline let number: Int
    private let busy = Atomic<Bool>(false)
    var transaction: OpaquePointer?
    private var space: RowSpace?
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

    /// Where its transaction opens sealed rows.
    @inline(__always)
    func space(_ cipher: (any RowCipher)?) -> Unmanaged<RowSpace>? {
        guard let cipher else { return nil }
        if space == nil { space = RowSpace(cipher) }
        return space.map(Unmanaged.passUnretained)
    }

    func close() {
        if let transaction { mdb_txn_abort(transaction) }
        transaction = nil
    }
}
