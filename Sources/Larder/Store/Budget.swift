/// What a store may take. Kept in the store, so that every process obeys the same; changed at any time.
public struct Budget: Sendable, Hashable {
    /// Bytes allocated on disk: what `st_blocks` x 512 sums to over every regular file of the store, the index included.
    /// Holds at every moment. At least `Budget.minimumBytes`. Default: unlimited.
    public var bytes: ByteCount
    /// Number of entries. At least 1. Default: unlimited.
    public var entries: Int
    /// The largest body. At least 1 byte. Default: unlimited (which the byte budget still bounds).
    public var largestEntry: ByteCount
    /// Bytes that must stay free on the file system, whoever uses it. Default: 0.
    public var freeDiskFloor: ByteCount

    /// The smallest byte budget: an empty index and room to change it in.
    public static let minimumBytes = ByteCount.mebibytes(1)

    /// A budget; every limit is off unless given.
    public init(
        bytes: ByteCount = .unlimited, entries: Int = .max, largestEntry: ByteCount = .unlimited,
        freeDiskFloor: ByteCount = .zero
    ) {
        self.bytes = bytes
        self.entries = entries
        self.largestEntry = largestEntry
        self.freeDiskFloor = freeDiskFloor
    }

    /// No limits.
    public static let unlimited = Budget()

    func validate() throws(LarderError) {
        if bytes < Self.minimumBytes {
            throw LarderError(
                .invalidArgument,
                "a budget of \(bytes.bytes) bytes is too small: the index alone needs room, "
                    + "so the least is \(Self.minimumBytes.bytes) bytes (1 MiB)")
        }
        if entries < 1 {
            throw LarderError(.invalidArgument, "a budget of \(entries) entries is too small: the least is 1")
        }
        if largestEntry < ByteCount(1 as Int64) {
            throw LarderError(.invalidArgument, "a largest entry of 0 bytes leaves nothing to store: the least is 1")
        }
    }

    /// Room kept back from puts, so that displacement itself always has pages to write:
    /// a 16th of the budget, at least 256 KiB and at most 32 MiB.
    var headroom: Int64 {
        bytes == .unlimited ? 0 : min(max(bytes.bytes / 16, 256 << 10), 32 << 20)
    }

    private static let largestBatch = 3072

    /// How large a batch of puts may be: it becomes growth of the index in one go, so it has to be small beside the budget.
    /// With a million entries each operation copies some two pages, and LMDB keeps the memory of the largest transaction.
    func batchLimits(_ limit: ByteCount) -> (memory: Int, count: Int) {
        if bytes == .unlimited { return (Int(clamping: limit.bytes), Self.largestBatch) }
        let memory = min(limit.bytes, max(bytes.bytes / 32, 128 << 10))
        return (Int(clamping: memory), Int(min(max(headroom / (20 * 4096), 1), Int64(Self.largestBatch))))
    }

    /// What puts may fill.
    var usableBytes: Int64 { bytes == .unlimited ? .max : bytes.bytes - headroom }
}
