import Locks

/// Entries of policy `memoryOnly`: bounded, nothing on disk. The expired go first, then the least recently used; pinned
/// and leased ones stay.
final class MemoryTable: Sendable {
    fileprivate struct State {
        var entries: [Key: PendingPut] = [:]
        var bytes = 0
        /// Bytes for entries that are about to come.
        var reserved = 0
    }

    private let limit: Int
    /// Has the memory that the entries leave.
    private let tier: MemoryTier
    private let state = EngineMutex(State())
    private let count = Atomic<Int>(0)
    private let moved = Atomic<UInt64>(0)

    /// Changes whenever a key comes here or goes: see `Lookups.whileMoving`.
    @inline(__always)
    var moves: UInt64 { moved.load(ordering: .acquiring) }

    /// True if there is no entry.
    @inline(__always)
    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    init(limit: Int, tier: MemoryTier) {
        self.limit = limit
        self.tier = tier
    }

    @inline(__always)
    func lookup(
        _ key: Key, use: UInt64?, at now: @autoclosure () -> Timestamp = .distantFuture
    ) -> PendingPut? {
        if isEmpty { return nil }
        return state.withLock { state in
            guard let put = state.entries[key] else { return nil }
            if let use { put.use(at: use, moment: now()) }
            return put
        }
    }

    /// Every entry, in no order.
    var all: [PendingPut] { state.withLock { Array($0.entries.values) } }

    /// How many entries there are, and the memory they take.
    var size: (count: Int, bytes: Int) { state.withLock { ($0.entries.count, $0.bytes) } }

    // MARK: Room

    /// Takes the memory that `put` needs, for the `insert` that follows; evicts others for it where necessary, and
    /// returns them. Throws `tooLarge` if it alone exceeds half of the limit, `noSpace` if what is pinned and leased
    /// leaves no room; then none is evicted.
    /// - Parameter kept: which of the entries must stay. Called without a lock held.
    func reserve(for put: PendingPut, at now: Timestamp, kept: ([PendingPut]) throws -> Set<Key>) throws -> [PendingPut]
    {
        if put.memory > limit / 2 {
            throw LarderError(
                .tooLarge,
                "\(put.key) has \(put.length) bytes, more than half of the memory limit of \(limit): store it on disk",
                key: put.key)
        }
        let candidates: [PendingPut]? = change { state in
            if state.take(put, limit) { return nil }
            return state.entries.values.filter { $0.key != put.key }
        }
        guard let candidates else { return [] }
        let keys = try kept(candidates)
        let order = candidates.filter { !keys.contains($0.key) }.sorted {
            let (first, second) = ($0.expires <= now, $1.expires <= now)
            return first != second ? first : $0.lastUse < $1.lastUse
        }
        return try change { state in
            var evicted: [PendingPut] = []
            func isThere(_ entry: PendingPut) -> Bool { state.entries[entry.key] === entry }
            let mostFreed = order.reduce(0) { isThere($1) ? $0 + $1.memory : $0 }
            guard state.fits(put, limit + mostFreed) else { throw self.isFull(put) }
            // Down to seven eighths of what may be evicted, so that sorting by use is paid for by many puts.
            let target = limit - (limit - (state.bytes + state.reserved - mostFreed)) / 8
            for entry in order where !state.fits(put, target) && isThere(entry) {
                state.remove(entry)
                evicted.append(entry)
            }
            count.store(state.entries.count, ordering: .releasing)
            guard state.take(put, limit) else { throw self.isFull(put) }
            return evicted
        }
    }

    private func isFull(_ put: PendingPut) -> LarderError {
        LarderError(
            .noSpace,
            "the memory limit of \(limit) bytes is full of pinned and leased entries: unpin some, or raise "
                + "`Configuration.memoryLimit`",
            key: put.key)
    }

    /// Gives back what `reserve` took for an entry that does not come.
    func cancel(_ put: PendingPut) { change { $0.reserved -= put.memory } }

    /// Changes what there is, and leaves the rest of the memory to the tier.
    private func change<R>(_ body: (inout State) throws -> R) rethrows -> R {
        // Goes when the lock is free.
        var released: MemoryTier.Released?
        defer { withExtendedLifetime(released) {} }
        return try state.withLock { state in
            let before = state.bytes + state.reserved
            defer {
                let after = state.bytes + state.reserved
                if after != before { released = tier.leave(after) }
            }
            return try body(&state)
        }
    }

    /// Stores an entry whose memory is reserved; what outlives an overwrite is taken over from the one in its place.
    func insert(_ put: PendingPut) {
        change { state in
            state.reserved -= put.memory
            state.bytes += put.memory
            if let old = state.entries.updateValue(put, forKey: put.key) {
                state.bytes -= old.memory
                put.inherit(from: old)
            }
            moved.wrappingAdd(1, ordering: .releasing)
            count.store(state.entries.count, ordering: .releasing)
        }
    }

    // MARK: Changes

    /// Replaces an entry by `new`, if it is still `old`.
    /// - Parameter isReserved: whether the memory of `new` is reserved; if not, it takes no more than `old`.
    func replace(_ old: PendingPut, by new: PendingPut, isReserved: Bool) {
        change { state in
            if isReserved { state.reserved -= new.memory }
            guard state.entries[old.key] === old else { return }
            state.bytes += new.memory - old.memory
            state.entries[old.key] = new
        }
    }

    /// Removes an entry that `predicate` selects; nil if there is none.
    @discardableResult
    func remove(_ key: Key, where predicate: (PendingPut) -> Bool = { _ in true }) -> PendingPut? {
        if isEmpty { return nil }
        return change { state in
            guard let old = state.entries[key], predicate(old) else { return nil }
            moved.wrappingAdd(1, ordering: .releasing)
            state.remove(old)
            count.store(state.entries.count, ordering: .releasing)
            return old
        }
    }

    /// Removes every entry that `predicate` selects; returns how many.
    @discardableResult
    func remove(where predicate: (PendingPut) -> Bool) -> Int {
        if isEmpty { return 0 }
        return change { state in
            let doomed = state.entries.values.filter(predicate)
            for put in doomed { state.remove(put) }
            count.store(state.entries.count, ordering: .releasing)
            return doomed.count
        }
    }

    /// Removes the entries that are no longer fresh, pinned ones left out; returns how many.
    @discardableResult
    func removeExpired(at now: Timestamp) -> Int {
        remove { $0.expires <= now && !$0.isPinned }
    }
}

extension MemoryTable.State {
    /// True if there is room for `put` in the place of what is under its key.
    fileprivate func fits(_ put: PendingPut, _ limit: Int) -> Bool {
        bytes + reserved + put.memory - (entries[put.key]?.memory ?? 0) <= limit
    }

    fileprivate mutating func take(_ put: PendingPut, _ limit: Int) -> Bool {
        guard fits(put, limit) else { return false }
        reserved += put.memory
        return true
    }

    fileprivate mutating func remove(_ put: PendingPut) {
        entries[put.key] = nil
        bytes -= put.memory
    }
}
