import HTTPCaching
import Larder
import Locks

/// Tells a response that was asked for before its key was invalidated from one asked for after (RFC 9111 section 4.4):
/// the former must not be stored. One number for many keys: a stranger's invalidation costs a response not stored.
final class Generations: Sendable {
    private struct Slot {
        var count: UInt32 = 0
        /// The uptime until which another process may bring what it asked for before the last invalidation.
        var unsettledUntil: UInt64 = 0

        mutating func advance(at uptime: UInt64) {
            count &+= 1
            unsettledUntil = uptime + Generations.settlingNanoseconds
        }
    }

    private struct State {
        var slots = Array(repeating: Slot(), count: 4_096)
        /// The slots of the keys of each commit under way, and their counts when its content was asked for.
        var commits: [Int: [(slot: Int, generation: UInt32)]] = [:]
        var nextCommit = 0
        /// Invalidations, and the commits that each still waits for.
        var waiters: [(commits: Set<Int>, CheckedContinuation<Void, Never>)] = []
    }

    /// How long a load of another process may take that began before an invalidation by this one.
    private static let settlingNanoseconds: UInt64 = 60_000_000_000
    private let state = Mutex(State())
    private let clock: any StoreClock

    init(_ clock: any StoreClock) { self.clock = clock }

    func current(_ key: String) -> UInt32 {
        let slot = Self.slot(key)
        return state.withLock { $0.slots[slot].count }
    }

    /// Whether a response that another process asked for may answer a request of this one: nothing was invalidated
    /// since the request, nor in the minute before.
    func isSettled(_ key: String, since generation: UInt32) -> Bool {
        let (slot, uptime) = (Self.slot(key), clock.uptime())
        return state.withLock { $0.slots[slot].count == generation && $0.slots[slot].unsettledUntil <= uptime }
    }

    func advance(_ key: String) {
        let (slot, uptime) = (Self.slot(key), clock.uptime())
        state.withLock { $0.slots[slot].advance(at: uptime) }
    }

    func advanceAll() {
        let uptime = clock.uptime()
        state.withLock { state in
            for index in state.slots.indices { state.slots[index].advance(at: uptime) }
        }
    }

    /// What was asked for under a key before now is not stored any more.
    func advance(_ primary: String, _ scope: SearchScope?) {
        advance(primary)
        if let scope { advance(scope.listKey) }
    }

    // MARK: Commits

    /// What was asked for with these generations is about to be stored; nil if one of the keys was invalidated since.
    /// Ends with ``endCommit(_:)``.
    func beginCommit(_ guards: [(key: String, generation: UInt32)]) -> Int? {
        let rows = guards.map { (slot: Self.slot($0.key), generation: $0.generation) }
        return state.withLock { state in
            guard rows.allSatisfy({ state.slots[$0.slot].count == $0.generation }) else { return nil }
            state.nextCommit += 1
            state.commits[state.nextCommit] = rows
            return state.nextCommit
        }
    }

    /// Commits under way.
    var commitCount: Int { state.withLock { $0.commits.count } }

    func endCommit(_ commit: Int) {
        let ended = state.withLock { state in
            state.commits[commit] = nil
            for index in state.waiters.indices { state.waiters[index].commits.remove(commit) }
            defer { state.waiters.removeAll { $0.commits.isEmpty } }
            return state.waiters.filter { $0.commits.isEmpty }.map(\.1)
        }
        for waiter in ended { waiter.resume() }
    }

    /// Returns when the commits are over that began before the last advance: call it between an advance and the
    /// removal, which would miss what is not there yet.
    /// - Parameter keys: those of these keys; nil for all.
    func commitsEnd(under keys: [String]? = nil) async {
        let slots = keys.map { Set($0.map(Self.slot)) }
        await withCheckedContinuation { continuation in
            let isWaiting = state.withLock { state in
                let commits = state.commits.filter { commit in
                    commit.value.contains { row in
                        row.generation != state.slots[row.slot].count && slots?.contains(row.slot) ?? true
                    }
                }
                if commits.isEmpty { return false }
                state.waiters.append((Set(commits.keys), continuation))
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }

    /// Where responses to other queries lie that may answer a key: only where the key is the URI and nothing else.
    func scope(of key: CacheKey, _ policy: KeyPolicy) -> SearchScope? {
        guard policy.isDefault, key.method == nil else { return nil }
        var scope = SearchScope(uri: key.uri)
        scope.generation = current(scope.listKey)
        return scope
    }

    private static func slot(_ key: String) -> Int {
        var key = key
        return key.withUTF8 { key in
            var hasher = Hasher()
            hasher.combine(bytes: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: uri(key))))
            return Int(UInt(bitPattern: hasher.finalize()) % 4_096)
        }
    }

    /// A key without what was added to the URI, such as the content of a QUERY: an invalidation is one of the URI,
    /// whatever was added. Additions begin with a space, which no URI has; a method comes before it.
    private static func uri(_ key: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>> {
        let slash = UInt8(ascii: "/")
        let scheme = key.indices.dropLast(2).first {
            key[$0] == UInt8(ascii: ":") && key[$0 + 1] == slash && key[$0 + 2] == slash
        }
        let end = key[(scheme ?? 0)...].firstIndex(of: UInt8(ascii: " ")) ?? key.endIndex
        return key[..<end]
    }
}
