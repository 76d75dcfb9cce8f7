/// Which stamps commits have replaced lately. A reader that found an entry just before a commit moved it notes its use
/// by the old stamp, and the use counts all the same.
///
/// Used under the writer lock only: what it knows is committed, or of the transaction that asks.
final class StampMoves: @unchecked Sendable {
    // SAFETY: the holder of the writer lock alone gets at it.
    /// The two latest generations, so that what is forgotten is not what came last.
    private var latest: [UInt64: UInt64] = [:]
    private var earlier: [UInt64: UInt64] = [:]
    private static let limit = 1 << 13

    /// The stamp that an entry has in place of this one; nil if none is known.
    func follow(_ stamp: UInt64, in own: [UInt64: UInt64]) -> UInt64? {
        var found: UInt64?
        // Stamps grow, so this ends.
        while let next = own[found ?? stamp] ?? latest[found ?? stamp] ?? earlier[found ?? stamp] { found = next }
        return found
    }

    /// A transaction that has replaced these is about to be committed.
    func note(_ moves: [UInt64: UInt64]) {
        if moves.isEmpty { return }
        if latest.count + moves.count > Self.limit {
            earlier = latest
            latest = moves
        } else {
            latest.merge(moves) { $1 }
        }
    }

    /// It was not committed.
    func undo(_ moves: [UInt64: UInt64]) {
        for old in moves.keys { latest[old] = nil }
    }
}
