import Synchronization

/// Entries of policy `memoryOnly`: bounded, least recently used ones go first, nothing on disk.
final class MemoryEntries: Sendable {
    private struct State {
        var entries: [Key: PendingPut] = [:]
        var bytes = 0
    }

    private let limit: Int
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    init(limit: ByteCount) { self.limit = Int(clamping: limit.bytes) }

    @inline(__always)
    func lookup(
        _ key: Key, use: UInt64?, at now: @autoclosure () -> Timestamp = .distantFuture
    ) -> PendingPut? {
        if count.load(ordering: .acquiring) == 0 { return nil }
        return state.withLock { state in
            guard let put = state.entries[key] else { return nil }
            if let use { put.use(at: use, moment: now()) }
            return put
        }
    }

    /// Stores an entry. Throws `tooLarge` if it alone exceeds the limit.
    func put(_ put: PendingPut) throws(LarderError) {
        if put.memory > limit {
            throw LarderError(
                .tooLarge,
                "\(put.key) has \(put.length) bytes, more than the memory limit of \(limit): store it on disk",
                key: put.key)
        }
        state.withLock { state in
            state.bytes += put.memory
            if let old = state.entries.updateValue(put, forKey: put.key) { state.bytes -= old.memory }
            if state.bytes > limit { evict(&state) }
            count.store(state.entries.count, ordering: .releasing)
        }
    }

    /// Down to seven eighths of the limit, so that sorting by use is paid for by many puts.
    private func evict(_ state: inout State) {
        let target = limit / 8 * 7
        for (key, put) in state.entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            guard state.bytes > target, state.entries.count > 1 else { return }
            state.entries[key] = nil
            state.bytes -= put.memory
        }
    }

    /// Removes an entry; false if it was not there.
    @discardableResult
    func remove(_ key: Key) -> Bool {
        if count.load(ordering: .acquiring) == 0 { return false }
        return state.withLock { state in
            guard let old = state.entries.removeValue(forKey: key) else { return false }
            state.bytes -= old.memory
            count.store(state.entries.count, ordering: .releasing)
            return true
        }
    }

    /// Removes every entry that `predicate` selects; returns how many.
    func remove(where predicate: (PendingPut) -> Bool) -> Int {
        state.withLock { state in
            let doomed = state.entries.values.filter(predicate)
            for put in doomed {
                state.entries[put.key] = nil
                state.bytes -= put.memory
            }
            count.store(state.entries.count, ordering: .releasing)
            return doomed.count
        }
    }

    /// Every entry, in no order.
    var all: [PendingPut] { state.withLock { Array($0.entries.values) } }
}
