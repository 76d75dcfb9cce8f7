import HTTPCaching
import Synchronization

/// Tells a response that was asked for before its key was invalidated from one asked for after (RFC 9111 section 4.4):
/// the former must not be stored. One number for many keys: a stranger's invalidation costs a response not stored.
final class Generations: Sendable {
    private let counts = Mutex<[UInt32]>(Array(repeating: 0, count: 4_096))

    func current(_ key: String) -> UInt32 {
        let slot = Self.slot(key)
        return counts.withLock { $0[slot] }
    }

    func advance(_ key: String) {
        let slot = Self.slot(key)
        counts.withLock { $0[slot] &+= 1 }
    }

    func advanceAll() {
        counts.withLock { counts in
            for index in counts.indices { counts[index] &+= 1 }
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
