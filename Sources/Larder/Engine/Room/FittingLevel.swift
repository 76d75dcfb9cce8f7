import Locks

/// How full the store may be for a batch to fit without room being made for it first, as far as that is known.
///
/// Below the high watermark, a store may still have no room for a batch: its free pages lie scattered, or batches are
/// large beside the budget. Removing entries then takes commits of its own, for which the batch waits, and the batch is
/// applied twice. So the committer removes in each batch what takes the store over this level. The level sinks with a
/// batch that lacks room, and rises while batches fit: it follows the mix of lengths. It is forgotten when the limits
/// or what is pinned change. Safe from any thread.
final class FittingLevel: Sendable {
    /// Bytes of live pages and files; the greatest number: no batch has lacked room.
    private let bytes = Atomic<Int64>(.max)
    /// Batches to come that say nothing when they lack room: what is removed now can be used some commits later.
    private let patience = Atomic<Int>(0)

    private static let mostPatience = 4
    /// Which part of the budget the level rises by with each batch that fits.
    private static let share: Int64 = 4096

    /// True once a batch has lacked room.
    var isKnown: Bool { bytes.load(ordering: .relaxed) < .max }

    /// How far `live` bytes are above the level; 0 if they are below it.
    func excess(of live: Int64) -> Int64 { max(0, live - bytes.load(ordering: .relaxed)) }

    /// Which part of the room for what may be displaced the level sinks by with a batch that does not, and in all.
    /// One batch in sixteen may lack room: what that costs is less than what a lower level would keep empty.
    private static let step: Int64 = 256
    private static let most: Int64 = 6

    /// A batch with which the store would have been this full lacked room.
    func noteLack(at fill: Watermarks.Fill) {
        // Where it is not known how much cannot be displaced, a level might be one that keeps nothing else.
        guard let kept = fill.kept else { return }
        let left = patience.load(ordering: .relaxed)
        patience.store(left > 0 ? left - 1 : Self.mostPatience, ordering: .relaxed)
        if left > 0 { return }
        let room = fill.usable - kept
        let level = min(bytes.load(ordering: .relaxed), fill.live) - room / Self.step
        bytes.store(max(level, fill.usable - room / Self.most), ordering: .relaxed)
    }

    /// A batch has fitted.
    func noteFit(at fill: Watermarks.Fill) {
        let left = patience.load(ordering: .relaxed)
        if left > 0 { patience.store(left - 1, ordering: .relaxed) }
        let level = bytes.load(ordering: .relaxed)
        if level < fill.usable { bytes.store(level + max(4096, fill.usable / Self.share), ordering: .relaxed) }
    }

    /// What was known is over.
    func forget() { bytes.store(.max, ordering: .relaxed) }
}
