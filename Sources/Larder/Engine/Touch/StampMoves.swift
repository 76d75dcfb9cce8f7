import Locks

/// Which stamps commits have replaced lately. A reader that found an entry just before a commit moved it notes its use
/// by the old stamp, and the use counts all the same.
final class StampMoves: Sendable {
    private struct Generations {
        /// The two latest, so that what is forgotten is not what came last.
        var latest: [UInt64: UInt64] = [:]
        var earlier: [UInt64: UInt64] = [:]
    }

    private let generations = EngineMutex(Generations())
    private static let limit = 1 << 13

    /// The stamp that an entry has in place of this one; nil if none is known.
    /// - Parameter own: what the transaction that asks has replaced.
    func follow(_ stamp: UInt64, in own: [UInt64: UInt64]) -> UInt64? {
        generations.withLock { known in
            var found: UInt64?
            // Stamps grow, so this ends.
            while let next = own[found ?? stamp] ?? known.latest[found ?? stamp] ?? known.earlier[found ?? stamp] {
                found = next
            }
            return found
        }
    }

    /// A commit has replaced these.
    func note(_ moves: [UInt64: UInt64]) {
        if moves.isEmpty { return }
        generations.withLock { known in
            if known.latest.count + moves.count > Self.limit {
                known = Generations(latest: moves, earlier: known.latest)
            } else {
                known.latest.merge(moves) { $1 }
            }
        }
    }
}
