import Locks

/// Bodies in memory above the disk. Shared by all handles of one store in a process.
///
/// They are found by their digest, which a lookup has read in the index just before: what is here can be forgotten, but
/// not out of date, whichever process has replaced, removed or displaced the entry. `AdaptiveClock` says what stays.
final class MemoryTier: Sendable {
    private struct State {
        var clock: AdaptiveClock<Digest, [UInt8]>
        var hits = 0
        var misses = 0
    }

    private let limit: Int
    private let state: EngineMutex<State>

    /// - Parameters:
    ///   - bytes: the most that it holds; 0 holds nothing.
    ///   - count: how many bodies.
    init(bytes: Int, count: Int) {
        limit = bytes
        state = EngineMutex(State(clock: AdaptiveClock(capacity: bytes, count: count)))
    }

    /// Bodies of fewer bytes are not held where they lie in the index: a copy from the mapping costs as much as the
    /// search here.
    static let leastInlineBytes: UInt64 = 16 << 10

    /// Bytes that a place in the clock takes beside the body, about.
    private static let overhead = 160

    /// True if a body of that length may be held.
    @inline(__always)
    func holds(_ length: UInt64) -> Bool { limit > 0 && length + UInt64(Self.overhead) <= UInt64(limit / 4) }

    /// The body with a digest.
    func bytes(of digest: Digest) -> [UInt8]? {
        state.withLock { state in
            let found = state.clock.value(for: digest)
            if found == nil { state.misses &+= 1 } else { state.hits &+= 1 }
            return found
        }
    }

    /// Holds a body that was read, unless it is damaged: a later put of the same bytes must not find it here.
    /// - Returns: the body.
    func take(_ bytes: [UInt8], _ digest: Digest) -> [UInt8] {
        if Digest.of(bytes) == digest {
            state.withLock { $0.clock.insert(bytes, for: digest, cost: bytes.count + Self.overhead) }
        }
        return bytes
    }

    /// What it holds, and how often something was found.
    var statistics: MemoryTierStatistics {
        state.withLock { state in
            MemoryTierStatistics(
                count: state.clock.count, bytes: ByteCount(state.clock.cost), hits: state.hits, misses: state.misses)
        }
    }
}
