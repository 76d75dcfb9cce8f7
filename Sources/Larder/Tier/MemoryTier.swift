import Locks

/// Bodies, and values made of them, in memory above the disk. Shared by all handles of one store in a process.
///
/// They are found by the digest of the body, which a lookup has read in the index just before: what is here can be
/// forgotten, but not out of date, whichever process has replaced, removed or displaced the entry. `AdaptiveClock` says
/// what stays.
final class MemoryTier: Sendable {
    /// What something was made of, and what it is.
    private struct Name: Hashable {
        let digest: Digest
        /// 0: the body itself. Else the number of a kind of values.
        let kind: Int
    }

    private enum Held: Sendable {
        case bytes([UInt8])
        case value(any Sendable)
    }

    private struct State {
        var clock: AdaptiveClock<Name, Held>
        var hits = 0
        var misses = 0
        var kinds: [Kind: Int] = [:]
    }

    /// A type and the name of its coding.
    private struct Kind: Hashable {
        let type: ObjectIdentifier
        let coding: String
    }

    private let limit: Int
    private let state: EngineMutex<State>

    /// - Parameters:
    ///   - bytes: the most that it holds; 0 holds nothing.
    ///   - count: how many bodies and values.
    init(bytes: Int, count: Int) {
        limit = bytes
        state = EngineMutex(State(clock: AdaptiveClock(capacity: bytes, count: count)))
    }

    /// False where nothing is ever held.
    @inline(__always)
    var isOn: Bool { limit > 0 }

    // MARK: Bodies

    /// Bodies of fewer bytes are not held where they lie in the index: a copy from the mapping costs as much as the
    /// search here.
    static let leastInlineBytes: UInt64 = 16 << 10

    /// True if a body of that length may be held.
    @inline(__always)
    func holds(_ length: UInt64) -> Bool { isOn && length + UInt64(Self.overhead) <= UInt64(limit / 4) }

    /// The body with a digest.
    func bytes(of digest: Digest) -> [UInt8]? {
        guard case .bytes(let bytes)? = find(Name(digest: digest, kind: 0)) else { return nil }
        return bytes
    }

    /// Holds a body that was read, unless it is damaged: a later put of the same bytes must not find it here.
    /// - Returns: the body.
    func take(_ bytes: [UInt8], _ digest: Digest) -> [UInt8] {
        if Digest.of(bytes) == digest {
            insert(.bytes(bytes), Name(digest: digest, kind: 0), cost: bytes.count + Self.overhead)
        }
        return bytes
    }

    // MARK: Values

    /// The number of a kind of values.
    func kind<Value>(_ type: Value.Type, coding: String) -> Int {
        state.withLock { state in
            let kind = Kind(type: ObjectIdentifier(type), coding: coding)
            if let number = state.kinds[kind] { return number }
            let number = state.kinds.count + 1
            state.kinds[kind] = number
            return number
        }
    }

    /// The value of a kind that was made of the body with a digest.
    func value<Value: Sendable>(of digest: Digest, kind: Int, as type: Value.Type) -> Value? {
        guard case .value(let value)? = find(Name(digest: digest, kind: kind)) else { return nil }
        return value as? Value
    }

    /// Holds a value, if there is room for it.
    /// - Parameter cost: bytes of memory that it takes, about.
    func hold(_ value: some Sendable, of digest: Digest, kind: Int, cost: Int) {
        insert(.value(value), Name(digest: digest, kind: kind), cost: max(0, cost) + Self.overhead)
    }

    // MARK: Room

    /// Bytes that a place in the clock takes beside what it holds, about.
    private static let overhead = 160

    /// Lets go of half of what is held: the system is short of memory. What is asked for again comes back.
    func shrink() {
        guard isOn else { return }
        state.withLock { state in
            let cost = state.clock.cost
            state.clock.resize(cost / 2)
            state.clock.resize(limit)
        }
    }

    /// Lets go of everything.
    func removeAll() { state.withLock { $0.clock.removeAll() } }

    /// How many bodies and values are held, in how much memory, and how often they were found.
    var statistics: MemoryTierStatistics {
        state.withLock { state in
            MemoryTierStatistics(
                count: state.clock.count, bytes: ByteCount(state.clock.cost), hits: state.hits, misses: state.misses)
        }
    }

    private func find(_ name: Name) -> Held? {
        guard isOn else { return nil }
        return state.withLock { state in
            let found = state.clock.value(for: name)
            if found == nil { state.misses &+= 1 } else { state.hits &+= 1 }
            return found
        }
    }

    private func insert(_ held: Held, _ name: Name, cost: Int) {
        guard isOn else { return }
        state.withLock { $0.clock.insert(held, for: name, cost: cost) }
    }
}
