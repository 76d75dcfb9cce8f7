import Locks

/// Memory above the disk, shared by all handles of one store in a process: the bodies that were read, and what was made
/// of them, in the part of `Configuration.memoryLimit` that entries of policy `memoryOnly` leave (`MemoryTable`).
///
/// What is here is found by the digest of the body, which a lookup has read in the index just before: it can be
/// forgotten, but not out of date, whichever process has replaced, removed or displaced the entry. `AdaptiveClock` says
/// what stays, and `MemoryPressure` when it has to go.
final class MemoryTier: Sendable {
    private struct Name: Hashable {
        let digest: Digest
        /// Of a `HeldKind`; 0: the body itself.
        let kind: Int
    }

    fileprivate enum Held: Sendable {
        case bytes([UInt8])
        case value(any Sendable)
    }

    private struct State {
        var clock: AdaptiveClock<Name, Held>
        var kinds: [HeldName: Int] = [:]
        var hits = 0
        var misses = 0
        /// Memory that entries of policy `memoryOnly` take.
        var taken = 0
        /// Values that are being made.
        var making: Set<Name> = []
        /// What the system leaves of the limit.
        var allowance: Int
        var isWatched = false
        /// When the allowance was last changed.
        var shrunk: UInt64 = 0

        mutating func bound(_ limit: Int) { clock.resize(min(allowance, limit - taken)) }
    }

    private let limit: Int
    private let keepsBodies: Bool
    private let heedsPressure: Bool
    private let clock: any StoreClock
    private let state: EngineMutex<State>

    /// - Parameters:
    ///   - limit: bytes that it holds at most, with what entries of policy `memoryOnly` take; 0 holds nothing.
    ///   - configuration: of the store.
    init(_ limit: Int, _ configuration: Configuration) {
        // Sums of costs do not overflow. Where each body is compared with its digest, nothing is found here.
        let limit = configuration.verification == .always ? 0 : min(limit, Int.max / 8)
        self.limit = limit
        keepsBodies = configuration.keepsBodiesInMemory
        heedsPressure = configuration.heedsMemoryPressure
        clock = configuration.clock
        let clock = AdaptiveClock<Name, Held>(capacity: limit, count: configuration.memoryCountLimit)
        state = EngineMutex(State(clock: clock, allowance: limit))
    }

    // MARK: Bodies

    /// Bodies of fewer bytes are not held where they lie in the index: a copy from the mapping costs as much as the
    /// search here.
    static let leastInlineBytes: UInt64 = 16 << 10

    /// True if a body of that length may be held.
    @inline(__always)
    func holds(_ length: UInt64) -> Bool { keepsBodies && fits(length) }

    /// True if what is made of a body of that length may be held.
    @inline(__always)
    func fits(_ length: UInt64) -> Bool {
        limit / 4 >= Self.overhead && length <= UInt64(limit / 4 - Self.overhead)
    }

    /// The body with a digest.
    func bytes(of digest: Digest) -> [UInt8]? {
        guard case .bytes(let bytes)? = find(Name(digest: digest, kind: 0)) else { return nil }
        return bytes
    }

    /// Holds a body that was read, unless it is damaged: a later put of the same bytes must not find it here.
    /// - Returns: the body.
    func take(_ bytes: [UInt8], _ digest: Digest) -> [UInt8] {
        if holds(UInt64(bytes.count)), Digest.of(bytes) == digest {
            insert(.bytes(bytes), Name(digest: digest, kind: 0), cost: bytes.count)
        }
        return bytes
    }

    // MARK: Values

    /// The number of the kind of values that `name` stands for.
    func kind(named name: HeldName) -> Int {
        state.withLock { state in
            if let kind = state.kinds[name] { return kind }
            // A program may make codecs without end. Those that are still in use are known by another number then.
            if state.kinds.count >= Self.mostNames { state.kinds = [:] }
            let kind = HeldKinds.next()
            state.kinds[name] = kind
            return kind
        }
    }

    /// What was made of the body with a digest.
    /// - Parameters:
    ///   - kind: the number of a `HeldKind`, whose type the value has.
    ///   - isCounted: false for a look that follows another one.
    func value(_ kind: Int, of digest: Digest, isCounted: Bool = true) -> (any Sendable)? {
        guard case .value(let value)? = find(Name(digest: digest, kind: kind), isCounted: isCounted) else { return nil }
        return value
    }

    /// What was made of the body with a digest in one of two ways. Counts once.
    func value(_ kind: Int, or other: Int, of digest: Digest) -> (value: any Sendable, isOther: Bool)? {
        if case .value(let value)? = find(Name(digest: digest, kind: kind), countsMiss: false) { return (value, false) }
        return self.value(other, of: digest).map { ($0, true) }
    }

    /// Holds a value, if there is room for it.
    /// - Parameter cost: bytes of memory that it takes, about.
    func hold<Value>(_ value: Value, _ kind: HeldKind<Value>, of digest: Digest, cost: Int) {
        insert(.value(value), Name(digest: digest, kind: kind.number), cost: cost)
    }

    /// True if a value is to be made now: it was asked for in this way before, not long ago, no one makes it, and few
    /// others are being made.
    func beginMaking<Value>(_ kind: HeldKind<Value>, of digest: Digest, cost: Int) -> Bool {
        let name = Name(digest: digest, kind: kind.number)
        return state.withLock {
            $0.clock.wasAsked(for: name, cost: cost + Self.overhead) && $0.making.count < Self.mostMade
                && $0.making.insert(name).inserted
        }
    }

    /// A value that was to be made is held, or cannot be made.
    func endMaking<Value>(_ kind: HeldKind<Value>, of digest: Digest) {
        state.withLock { _ = $0.making.remove(Name(digest: digest, kind: kind.number)) }
    }

    // MARK: Room

    private static let mostNames = 1024
    /// Threads that wait for disks have other work, too.
    private static let mostMade = 4

    /// Bytes that what is held takes beside itself, about, with the keys of what has gone.
    private static let overhead = 320

    /// Leaves memory to entries of policy `memoryOnly`: `bytes` in all.
    /// - Returns: what has to go, for the caller to release when it holds no lock.
    func leave(_ bytes: Int) -> Released {
        state.withLock { state in
            state.taken = bytes
            state.bound(limit)
            return Released(values: state.clock.takeGone())
        }
    }

    /// What is not held any more. Its release may run code of the program's.
    struct Released: Sendable {
        fileprivate let values: [Held]
    }

    /// The system is short of memory: lets go of half of what is held. The rest of the allowance comes back by and by.
    func shrink() {
        let gone: [Held] = state.withLock { state in
            // System and cgroup tell of the same.
            if state.allowance < limit, clock.uptime() &- state.shrunk < Self.pause / 10 { return [] }
            state.allowance = min(limit, max(state.clock.cost / 2, min(limit / 64, Self.leastAllowance)))
            state.shrunk = clock.uptime()
            state.bound(limit)
            return state.clock.takeGone()
        }
        // Not under the lock.
        _ = gone
    }

    /// Lets go of everything: the store is closed.
    func removeAll() {
        let gone: [Held] = state.withLock { state in
            state.clock.removeAll()
            return state.clock.takeGone()
        }
        // Not under the lock.
        _ = gone
    }

    private static let leastAllowance = 1 << 20
    /// For how long the allowance stays as it is after it was changed.
    private static let pause: UInt64 = 10_000_000_000

    /// How many bodies and values are held, in how much memory, and how often they were found.
    var statistics: MemoryTierStatistics {
        state.withLock { state in
            MemoryTierStatistics(
                count: state.clock.count, bytes: ByteCount(state.clock.cost), hits: state.hits, misses: state.misses)
        }
    }

    private func find(_ name: Name, isCounted: Bool = true, countsMiss: Bool = true) -> Held? {
        state.withLock { state in
            let found = state.clock.value(for: name)
            if !isCounted { return found }
            if found != nil { state.hits &+= 1 } else if countsMiss { state.misses &+= 1 }
            return found
        }
    }

    private func insert(_ held: Held, _ name: Name, cost: Int) {
        guard cost >= 0, fits(UInt64(cost)) else { return }
        let (isFirst, gone) = state.withLock { state -> (Bool, [Held]) in
            if state.allowance < limit, clock.uptime() &- state.shrunk > Self.pause {
                state.allowance = min(limit, 2 * state.allowance)
                state.shrunk = clock.uptime()
                state.bound(limit)
            }
            state.clock.insert(held, for: name, cost: cost + Self.overhead)
            defer { state.isWatched = true }
            return (!state.isWatched, state.clock.takeGone())
        }
        // Not under the lock.
        _ = gone
        if isFirst, heedsPressure { MemoryPressure.shared.watch(self) }
    }
}
