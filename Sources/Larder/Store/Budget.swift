/// The limits of a store. They are kept in the store, so every process obeys the same ones, and can be changed at any
/// time.
public struct Budget: Sendable, Hashable {
    /// Bytes allocated on disk: the sum of `st_blocks` x 512 over every regular file of the store, the index included.
    /// Holds at every moment. At least `Budget.minimumBytes`. Default: unlimited.
    public var bytes: ByteCount
    /// Largest number of entries. At least 1. Default: unlimited.
    public var entries: Int
    /// The largest body. At least 1 byte. Default: unlimited, which means half of the room that the byte budget leaves
    /// for entries; see `effectiveLargestEntry`.
    public var largestEntry: ByteCount
    /// Bytes that must stay free on the file system, whatever uses the rest. Default: 0.
    public var freeDiskFloor: ByteCount

    /// The smallest byte budget: an empty index and room for changes. 256 pages of the system: 1 MiB if a page has 4
    /// KiB, 4 MiB if it has 16 KiB (Apple silicon).
    public static var minimumBytes: ByteCount { leastBytes(pageSize: systemPageSize) }

    /// Bytes per page of the index that this budget is for; of a new index until one says otherwise.
    var pageSize: Int {
        get { page.size }
        set { page.size = newValue }
    }

    private var page = Page()

    /// Not a limit: budgets for indexes with other pages are equal if their limits are.
    private struct Page: Hashable {
        var size = Budget.systemPageSize

        static func == (first: Page, second: Page) -> Bool { true }

        func hash(into hasher: inout Hasher) {}
    }

    static let systemPageSize = min(max(Int(sysconf(Int32(_SC_PAGESIZE))), 4096), 65536)

    private static func leastBytes(pageSize: Int) -> ByteCount { ByteCount(max(1 << 20, 256 * Int64(pageSize))) }

    /// A budget; every limit is off unless given.
    /// - Parameters:
    ///   - bytes: the most that the store may take on disk, index and temporary files included; at least
    ///     `minimumBytes`. Default: unlimited.
    ///   - entries: the most entries there may be. Default: unlimited.
    ///   - largestEntry: the longest body that is accepted. Default: unlimited, which means half of the room that the
    ///     byte budget leaves for entries.
    ///   - freeDiskFloor: bytes that must stay free on the file system. Default: 0.
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

    /// The same limits for an index with pages of this size.
    func with(pageSize: Int) -> Budget {
        var copy = self
        copy.pageSize = pageSize
        return copy
    }

    func validate() throws(LarderError) {
        let least = Self.leastBytes(pageSize: pageSize)
        if bytes < least {
            throw LarderError(
                .invalidArgument,
                "a budget of \(bytes.bytes) bytes is too small: the index alone needs room, "
                    + "so the least is \(least.bytes) bytes (\(least.bytes >> 20) MiB)")
        }
        if entries < 1 {
            throw LarderError(.invalidArgument, "a budget of \(entries) entries is too small: the least is 1")
        }
        if largestEntry < ByteCount(1 as Int64) {
            throw LarderError(.invalidArgument, "a largest entry of 0 bytes leaves nothing to store: the least is 1")
        }
    }

    /// Room kept back from puts, so that displacement itself always has pages to write:
    /// a 16th of the budget, at least 64 pages of the index (256 KiB with pages of 4 KiB) and at most 32 MiB.
    var headroom: Int64 {
        bytes == .unlimited ? 0 : min(max(bytes.bytes / 16, 64 * Int64(pageSize)), 32 << 20)
    }

    /// Pages of the index in the headroom.
    var headroomPages: Int64 { headroom / Int64(pageSize) }

    /// How many changes of entries one transaction may hold, so that the pages it copies fit the headroom: 20 pages
    /// each at worst.
    var changesInHeadroom: Int64 { max(headroomPages / 20, 1) }

    private static let largestBatch = 3072

    /// How large a batch of puts may be: it becomes growth of the index in one go, so it has to be small compared with
    /// the budget. With a million entries each operation copies some two pages, and LMDB keeps the memory of the
    /// largest transaction.
    func batchLimits(_ limit: ByteCount) -> (memory: Int, count: Int) {
        if bytes == .unlimited { return (Int(clamping: limit.bytes), Self.largestBatch) }
        let memory = min(limit.bytes, max(bytes.bytes / 32, 128 << 10))
        return (Int(clamping: memory), Int(min(changesInHeadroom, Int64(Self.largestBatch))))
    }

    /// The bytes that puts may fill.
    package var usableBytes: Int64 { bytes == .unlimited ? .max : bytes.bytes - headroom }

    /// The longest body that a put accepts: `largestEntry`, but never more than the room that the byte budget leaves
    /// for entries.
    ///
    /// Without a `largestEntry` it is half of that: a body that takes nearly everything would displace all others, and
    /// be displaced for the next one.
    public var effectiveLargestEntry: ByteCount {
        if bytes == .unlimited { return largestEntry }
        return largestEntry == .unlimited ? ByteCount(usableBytes / 2) : min(largestEntry, ByteCount(usableBytes))
    }
}
