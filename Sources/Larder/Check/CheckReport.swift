/// The invariants of a store, which hold at every moment; see `docs/architecture.md`.
public enum Invariant: String, Sendable, Hashable, CaseIterable {
    /// Every entry's body exists with the recorded length, or is marked as lost, which makes the entry a miss.
    case I1
    /// A blob's reference count equals the number of its entries.
    case I2
    /// The counters equal a recount.
    case I3
    /// Every entry is in the access order exactly once, with its own stamp.
    case I4
    /// Expiry, tags and sessions hold exactly the entries whose records say so.
    case I5
    /// Every file in `blobs/` has a blob record.
    case I6
    /// Bytes hash to their name.
    case I7
    /// The reported allocated bytes equal those of the directory.
    case I8
}

/// One place where an invariant does not hold.
public struct Violation: Sendable, Hashable, CustomStringConvertible {
    /// The invariant that does not hold.
    public let invariant: Invariant
    /// A description of the violation, with the key, digest or file concerned.
    public let message: String
    /// True if a repair fixed it.
    public internal(set) var isRepaired = false

    /// `I2: ...`.
    public var description: String { "\(invariant.rawValue): \(message)" + (isRepaired ? " (repaired)" : "") }
}

/// The result of `Store.check`.
public struct CheckReport: Sendable, Hashable {
    /// Every violation found, at most 1,000.
    public internal(set) var violations: [Violation] = []
    /// Number of violations found in all.
    public internal(set) var violationCount = 0
    /// Number of violations repaired.
    public internal(set) var repairedCount = 0
    /// Entries examined.
    public internal(set) var entryCount = 0
    /// Blobs examined.
    public internal(set) var blobCount = 0
    /// Blobs among them that are bodies in progress. They have no digest yet, so only the length of their files is
    /// checked.
    public internal(set) var partialCount = 0
    /// Bytes of bodies hashed.
    public internal(set) var hashedBytes = ByteCount.zero
    /// Paths, below the store's directory, of files and directories that do not belong to the store, such as
    /// `lost+found` or an editor's copy; at most 1,000. They are not violations: repairs do not
    /// touch them, and the store's size does not include them.
    public internal(set) var foreignFiles: [String] = []

    /// Violations kept with their text.
    package static let violationLimit = 1000

    /// True if every invariant holds.
    public var isClean: Bool { violationCount == 0 }
    /// True if violations were found and every one was repaired, those without a text included. False for a clean
    /// report, and for one of a check that does not repair.
    public var isRepaired: Bool { violationCount > 0 && repairedCount == violationCount }
}

/// The result of a rebuild of the index: damage, entries kept and entries lost.
public struct RebuildReport: Sendable, Hashable {
    /// Places where the index was damaged, at most a thousand; empty if it was intact.
    public internal(set) var damages: [String] = []
    /// Entries the damaged index counted; nil if it was intact, or its counters were lost.
    package internal(set) var countedEntries: Int?
    /// Entries of the store now.
    public internal(set) var keptEntries = 0
    /// True if the limits of the store, including its budget, were lost: it has none now.
    public internal(set) var hasLostBudget = false
    /// Body files removed because no part of the index could be read.
    public internal(set) var removedFiles = 0
    /// True if no part of the index could be read: the store is empty, and the old index is in `quarantine/`.
    public internal(set) var isEmptied = false
    /// True if `FORMAT` was written again.
    public internal(set) var hasRestoredFormat = false
    /// The result of the check with repair that followed: bodies that do not match, files that lost their entry.
    public internal(set) var check = CheckReport()

    /// Entries that were lost with the index; nil if the number is unknown.
    public var lostEntries: Int? { countedEntries.map { max(0, $0 - keptEntries) } }
}

/// The progress of a check.
public struct CheckProgress: Sendable, Hashable {
    /// Bytes of bodies read so far.
    public let hashedBytes: ByteCount
    /// Stored bytes of all bodies.
    public let totalBytes: ByteCount
}
