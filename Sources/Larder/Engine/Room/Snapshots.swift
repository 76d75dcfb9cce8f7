import LMDB
import Locks

/// What is known of snapshots that readers hold on to, so that a full store can continue while one is held.
///
/// LMDB reuses no page that was freed after the oldest snapshot, held by any reader: a slow reader, a long check, a
/// process that was stopped. This keeps, for the latest commits, how long the file was and which numbers were given out
/// by then. From that follows which free pages such a snapshot cannot need, and which bodies are younger than it.
final class Snapshots: Sendable {
    /// The index as it was at a commit.
    struct Mark: Sendable {
        /// The number of the commit.
        let transaction: UInt64
        let lastPage: Int
        /// Blobs stored later have this id or a greater one.
        let nextID: UInt64
        /// Entries put or used later have this stamp or a greater one.
        let nextStamp: UInt64
    }

    private struct Known {
        var marks: [Mark] = []
        /// The oldest snapshot when it was last looked, and since when it has been that.
        var oldest: UInt64 = 0
        var since: UInt64 = 0
        /// Stamp up to which no entry gives room beside `oldest`.
        var position: UInt64 = 0
    }

    private let known = EngineMutex(Known())
    /// Set while a snapshot is held.
    private let isHeld = Atomic<Bool>(false)

    /// Marks kept beside those that a snapshot goes by.
    private static let limit = 256
    /// Nanoseconds after which a snapshot counts as held.
    private static let patience: UInt64 = 50_000_000

    /// True if a snapshot was held when it was last looked.
    var mayBeHeld: Bool { isHeld.load(ordering: .relaxed) }

    /// Notes the state that a write transaction begins with.
    /// - Parameter readers: the snapshots that readers hold, oldest first.
    func note(_ mark: Mark, readers: () -> [UInt64]) {
        known.withLock { known in
            if let last = known.marks.last, last.transaction >= mark.transaction { return }
            if known.marks.count >= 2 * Self.limit {
                let needed = Set(readers().compactMap { Self.position(of: $0, in: known.marks) })
                let recent = known.marks.count - Self.limit
                known.marks = known.marks.indices.filter { $0 >= recent || needed.contains($0) }.map { known.marks[$0] }
            }
            known.marks.append(mark)
        }
    }

    /// The state that `snapshot` shows, or the first one after it that is known; nil if none is.
    func mark(_ snapshot: UInt64) -> Mark? {
        known.withLock { known in Self.position(of: snapshot, in: known.marks).map { known.marks[$0] } }
    }

    private static func position(of snapshot: UInt64, in marks: [Mark]) -> Int? {
        var (low, high) = (0, marks.count)
        while low < high {
            let middle = (low + high) / 2
            if marks[middle].transaction < snapshot { low = middle + 1 } else { high = middle }
        }
        return low < marks.count ? low : nil
    }

    /// Notes the oldest snapshot that is not the latest state; nil: there is none. Returns how long it has been that,
    /// in nanoseconds.
    @discardableResult
    func look(_ oldest: UInt64?, at uptime: UInt64) -> UInt64 {
        let age = known.withLock { known -> UInt64 in
            guard let oldest else {
                known.oldest = 0
                return 0
            }
            if known.oldest != oldest {
                known.oldest = oldest
                known.since = uptime
                known.position = 0
            }
            return uptime &- known.since
        }
        isHeld.store(oldest != nil && age >= Self.patience, ordering: .relaxed)
        return age
    }

    /// Where displacement continues while the oldest snapshot is held.
    var position: UInt64 {
        get { known.withLock { $0.position } }
        set { known.withLock { $0.position = newValue } }
    }
}
