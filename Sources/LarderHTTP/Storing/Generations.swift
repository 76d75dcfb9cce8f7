import HTTPCaching
import Larder
import Synchronization

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

    /// How long a load of another process may take that began before an invalidation by this one.
    private static let settlingNanoseconds: UInt64 = 60_000_000_000
    private let slots = Mutex<[Slot]>(Array(repeating: Slot(), count: 4_096))
    private let clock: any StoreClock

    init(_ clock: any StoreClock) { self.clock = clock }

    func current(_ key: String) -> UInt32 {
        let slot = Self.slot(key)
        return slots.withLock { $0[slot].count }
    }

    /// Whether a response that another process asked for may answer a request of this one: nothing was invalidated
    /// since the request, nor in the minute before.
    func isSettled(_ key: String, since generation: UInt32) -> Bool {
        let (slot, uptime) = (Self.slot(key), clock.uptime())
        return slots.withLock { $0[slot].count == generation && $0[slot].unsettledUntil <= uptime }
    }

    func advance(_ key: String) {
        let (slot, uptime) = (Self.slot(key), clock.uptime())
        slots.withLock { $0[slot].advance(at: uptime) }
    }

    func advanceAll() {
        let uptime = clock.uptime()
        slots.withLock { slots in
            for index in slots.indices { slots[index].advance(at: uptime) }
        }
    }

    /// What was asked for under a key before now is not stored any more.
    func advance(_ primary: String, _ scope: SearchScope?) {
        advance(primary)
        if let scope { advance(scope.listKey) }
    }

    /// Where responses to other queries lie that may answer a key: only where the key is the URI and nothing else.
    func scope(of key: CacheKey, _ policy: KeyPolicy) -> SearchScope? {
        guard policy.isDefault, key.method == nil else { return nil }
        var scope = SearchScope(uri: key.uri)
        scope.generation = current(scope.listKey)
        return scope
    }

    private static func slot(_ key: String) -> Int { Int(UInt(bitPattern: uri(key).hashValue) % 4_096) }

    /// A key without what was added to the URI, such as the content of a QUERY: an invalidation is one of the URI,
    /// whatever was added. Additions begin with a space, which no URI has; a method comes before it.
    private static func uri(_ key: String) -> Substring {
        let start = key.firstRange(of: "://")?.upperBound ?? key.startIndex
        return key[..<(key[start...].firstIndex(of: " ") ?? key.endIndex)]
    }
}
