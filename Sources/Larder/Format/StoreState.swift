import CZlib

/// The one row `state` of the `meta` database: counters, budget and marks. Changed in the transaction that changes what
/// it counts, so that every size is exact at every commit and costs one lookup.
struct StoreState: Equatable, Sendable {
    // Counters.
    var entryCount: UInt64 = 0
    var blobCount: UInt64 = 0
    /// Sum over entries of their body's length.
    var logicalBytes: UInt64 = 0
    /// Sum over blobs of their stored length.
    var storedBytes: UInt64 = 0
    /// Sum over body files of their allocated bytes.
    var fileAllocated: UInt64 = 0
    /// Number of body files.
    var fileCount: UInt64 = 0
    /// Number of embedded bodies to which their digest does not lead; see `Index+Strays`.
    var strayCount: UInt64 = 0
    /// Sum over blobs of the bytes that compression saves.
    var compressionGain: UInt64 = 0
    // Next numbers.
    var nextID: UInt64 = 1
    var nextStamp: UInt64 = 1
    // Marks.
    /// Latest store time seen; see `EntryClock`.
    var clock: Int64 = 0
    /// Store time less the uptime in the run of the machine that `boot` names; the least number if it is not known.
    var clockOffset = Int64.min
    /// Body files carry the epoch they were written in; a checkpoint syncs all and starts the next.
    var epoch: UInt64 = 1
    /// Files of this epoch and earlier are on disk.
    var syncedEpoch: UInt64 = 0
    /// Files of epochs `suspectFrom ..< suspectTo` were not synced before the machine went down.
    var suspectFrom: UInt64 = 0
    var suspectTo: UInt64 = 0
    /// Identifies the run of the machine in which the store was last opened.
    var boot: UInt64 = 0
    var budget = Budget()

    /// Written where compression saves something: a store without compressed bodies stays one of the version before.
    static let format: UInt32 = 4
    private static let length = 22 * 8
    /// Format 3 has no gain of compression.
    private static let length3 = 21 * 8
    /// Format 2 has no strays, either.
    private static let length2 = 20 * 8
    /// Format 1 has no seal and no offset of the clock, either.
    private static let length1 = 19 * 8

    var bytes: [UInt8] {
        let length = compressionGain > 0 ? Self.length : Self.length3
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<length])
            let fields: [UInt64] = [
                UInt64(compressionGain > 0 ? Self.format : 3), entryCount, blobCount, logicalBytes, storedBytes,
                fileAllocated, fileCount, nextID,
                nextStamp, epoch, syncedEpoch, suspectFrom, suspectTo, boot, UInt64(bitPattern: clock),
                UInt64(bitPattern: budget.bytes.bytes), UInt64(clamping: budget.entries),
                UInt64(bitPattern: budget.largestEntry.bytes), UInt64(bitPattern: budget.freeDiskFloor.bytes),
                UInt64(bitPattern: clockOffset), strayCount, compressionGain,
            ]
            for (index, field) in fields.prefix(length / 8).enumerated() { raw.setField(index * 8, field) }
            raw.setField(4, Self.seal(UnsafeRawBufferPointer(raw)))
            count = length
        }
    }

    init() {}

    init?(_ raw: UnsafeRawBufferPointer) {
        let (format, seal): (UInt32, UInt32) = raw.count >= Self.length1 ? (raw.field(0), raw.field(4)) : (0, 0)
        switch format {
        case 1: guard raw.count == Self.length1, seal == 0 else { return nil }
        case 2: guard raw.count == Self.length2, seal == Self.seal(raw) else { return nil }
        case 3: guard raw.count == Self.length3, seal == Self.seal(raw) else { return nil }
        case Self.format: guard raw.count == Self.length, seal == Self.seal(raw) else { return nil }
        default: return nil
        }
        func field(_ index: Int) -> UInt64 { raw.field(index * 8) }
        entryCount = field(1)
        blobCount = field(2)
        logicalBytes = field(3)
        storedBytes = field(4)
        fileAllocated = field(5)
        fileCount = field(6)
        nextID = field(7)
        nextStamp = field(8)
        // Numbers that no store reaches: ids would run into the seals of entries.
        guard nextID < 1 << 47, nextStamp < 1 << 62 else { return nil }
        epoch = field(9)
        syncedEpoch = field(10)
        suspectFrom = field(11)
        suspectTo = field(12)
        boot = field(13)
        clock = Int64(bitPattern: field(14))
        budget.bytes = ByteCount(Int64(bitPattern: field(15)))
        budget.entries = Int(clamping: field(16))
        budget.largestEntry = ByteCount(Int64(bitPattern: field(17)))
        budget.freeDiskFloor = ByteCount(Int64(bitPattern: field(18)))
        if format >= 2 { clockOffset = Int64(bitPattern: field(19)) }
        if format >= 3 { strayCount = field(20) }
        if format >= 4 { compressionGain = field(21) }
    }

    /// CRC-32 of the fields: a flipped bit of the budget would otherwise empty the store, and one of the clock expire
    /// what is in it.
    private static func seal(_ raw: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: crc32(0, raw.baseAddress! + 8, UInt32(raw.count - 8)))
    }

    /// Takes note of the run of the machine. In a new one, body files that an earlier run wrote and did not sync are
    /// suspect from now on, until they have been read.
    ///
    /// - Parameters:
    ///   - current: this run of the machine; 0 if the system does not tell. Then every open that finds the store unused
    ///     is taken for the first of a run.
    ///   - isShared: whether another process has the store open, which has taken note before.
    ///   - wasClosed: whether everything was synced when the last store closed, and nothing written since.
    /// - Returns: true if anything changed.
    @discardableResult
    mutating func note(boot current: UInt64, isShared: Bool, wasClosed: Bool) -> Bool {
        let isNewRun = current == 0 ? !isShared : boot != current
        guard isNewRun else { return false }
        let known = self
        boot = current
        // The uptime counts from another moment now.
        clockOffset = .min
        if !wasClosed {
            if suspectFrom >= suspectTo { suspectFrom = syncedEpoch &+ 1 }
            epoch &+= 1
            suspectTo = epoch
        }
        return self != known
    }

    /// The files are a copy, and it is not known whether that is on disk: all are suspect until they have been read.
    mutating func noteCopy() {
        suspectFrom = 1
        epoch &+= 1
        suspectTo = epoch
    }

    /// Epochs whose files may have lost bytes to a power loss.
    var suspects: Range<UInt64> { suspectFrom..<max(suspectFrom, suspectTo) }

    /// True if a file written in `epoch` may have lost bytes to a power loss.
    func isSuspect(epoch: UInt64) -> Bool { epoch >= suspectFrom && epoch < suspectTo }
}
