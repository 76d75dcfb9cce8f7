import Logging

/// The settings with which a store is opened. Behaviour first, then performance.
///
/// Stores of one path in one process share one engine. Each has its own `durability`, lifetimes, `version`,
/// `inlineThreshold`, `embeddingThreshold` and `compression`; events reach the observers and loggers of all; the latest
/// `budget` applies. `isReadOnly`, `verification`, `expiredRetention`, `clock`, `commitDelay`, `pendingLimit`,
/// `memoryLimit`, `keepsBodiesInMemory`, `memoryCountLimit`, `watermarks` and `indexMapSize` are shared: an open that
/// asks for other values is refused (`locked`).
public struct Configuration: Sendable {
    // MARK: Behaviour

    /// Limits to set on the store. Nil (the default) keeps the limits that the store has; a new store has none.
    public var budget: Budget?
    /// The durability of a put, a removal or another change whose call does not give one. Default: `relaxed`.
    public var durability = Durability.relaxed
    /// How long entries put with `Lifetime.standard` are fresh. Default: never expire.
    public var defaultLifetime = Lifetime.never
    /// How long an entry that expired is kept for callers that can validate it (`get(_:includingExpired:)`). Then it is
    /// removed in the background, with a budget or without; if room is needed it is removed immediately. Default: one
    /// minute; less than 0 is 0.
    public var expiredRetention = Duration.seconds(60)
    /// The longest lifetime any entry gets, `never` included. Nil (the default): no ceiling.
    public var maximumLifetime: Duration?
    /// The application's version. Entries of other versions are invisible to every call except those that concern the
    /// whole store (`clear`, `collect`, `check`, statistics, pins of tags, the budget) and `Selection.otherVersions`;
    /// they are reclaimed. Nil (the default): entries are put without a version, and the store sees entries of every
    /// version.
    public var version: String?
    /// When the bytes of a body are checked on reading. Default: after an unclean shutdown of the machine.
    public var verification = Verification.afterUncleanShutdown
    /// When an open checks every page of the index before it uses them. Default: unless the store was closed properly
    /// and has not changed since.
    public var indexCheck = IndexCheck.whenInDoubt
    /// Opens a store whose directory belongs to another user, neither root nor the user that runs the process. The
    /// owner can replace its contents at any time. Default: refused.
    public var allowsOtherOwner = false
    /// Opens an existing store without changing it: no put, removal, record of accesses or sweep.
    public var isReadOnly = false
    /// Called on displacement, recovery and failed commits, on the thread where they happen. It must return quickly and
    /// must not call the store. Default: nothing.
    public var observer: (@Sendable (StoreEvent) -> Void)?
    /// The logger for repairs and failures. Default: a logger labelled `larder`.
    public var logger = Logger(label: "larder")
    /// The least level of messages of a category that are written, whatever the level of `logger`. Categories that are
    /// not named have that level. Can be changed later: `Store.setLogLevel(_:for:)`. Default: empty.
    public var logLevels: [LogCategory: Logger.Level] = [:]
    /// The key of an encrypted store. A store becomes encrypted when it is made with a key, and opens with that key
    /// only; see `Store.changeKey(at:from:to:)`. An open with a key of a store that is not encrypted is refused.
    /// Default: nil, not encrypted.
    public var encryption: EncryptionKey?
    /// The source of time of the store.
    public var clock: any StoreClock = SystemClock()

    // MARK: Performance

    /// Bodies up to this length live in the index, larger ones in files of their own. 0 ... 1 MiB. Default: 256 KiB.
    /// Not more than a 64th of the byte budget, whatever is set. May differ from open to open.
    public var inlineThreshold = ByteCount.kibibytes(256)
    /// Bodies up to this length are part of the record of their entry: one search of the index finds both. Each entry
    /// then has its own copy, and a lookup by digest finds it slowly where it was not put by content
    /// (`putByContent(_:_:)`). 0 ... 2 KiB, as far as it fits half a page of the index with key, tags and metadata.
    /// Default: 512 bytes. 0: none is. May differ from open to open.
    public var embeddingThreshold: ByteCount = 512
    /// Whether bodies are stored compressed that are put without a choice of their own. Default: off.
    public var compression = Compression.off
    /// How long a relaxed put may wait for others to share its commit: this long when the store is idle, up to ten
    /// times as long while commits take long. A longer delay means fewer syncs; a shorter one means that a crash loses
    /// less. At most 10 ms, or 100, while other processes have the store open, which do not see the put before.
    /// Default: 10 ms.
    public var commitDelay = Duration.milliseconds(10)
    /// The most address space the index may take in this process, in bytes, and so the longest its file may become: at
    /// least 1 MiB. For systems that give a process little of it (iOS). Puts throw `mapFull` beyond it. Nil (the
    /// default): 1 TiB.
    ///
    /// The index takes less at first: twice the byte budget of this configuration, but 64 MiB to 64 GiB. It takes more
    /// as it grows.
    public var indexMapSize: ByteCount?
    /// Memory that puts not yet committed may take before callers wait. Default: 16 MiB. A small byte budget lowers it.
    public var pendingLimit = ByteCount.mebibytes(16)
    /// Memory above the disk, for all handles of the store in this process. Entries of policy `memoryOnly` come first,
    /// pinned ones included; one may take half of it. The rest is for decoded values, for what a gateway sends again
    /// and again, and with `keepsBodiesInMemory` for bodies; one may take a quarter. Of these, what is not asked for
    /// again makes room for what is, and half of all goes when the system is short of memory; see
    /// `Statistics.memoryTier`. Default: 16 MiB.
    public var memoryLimit = ByteCount.mebibytes(16)
    /// Whether bodies that were read whole stay in memory, within `memoryLimit`. One that lies in a file, or has 16 KiB
    /// and more in the index, is then returned by `get` without a file, a read or a copy. Each is compared with its
    /// digest when it is taken in. None stays with `Verification.always`. Default: false, as the system's page cache
    /// has them, too.
    public var keepsBodiesInMemory = false
    /// How many bodies and decoded values that memory holds at most; 1 or more. Default: 65,536.
    public var memoryCountLimit = 65_536
    /// Background displacement starts above `high` and ends below `low`: fractions of the byte budget that puts may
    /// fill. Defaults: 0.95 and 0.90.
    public var watermarks = Watermarks(high: 0.95, low: 0.90)

    /// When an open checks every page of the index.
    public enum IndexCheck: Sendable, Hashable {
        /// If the store was not closed after its last use, or its file has changed since: after the open, while the
        /// store is already in use, or before it if an earlier walk was not finished or the file is cut short. At every
        /// open when the index is small (1,024 pages). About a second for a million entries.
        case whenInDoubt
        /// At every open, for a check of the disk.
        case always
    }

    /// Fill levels between which background displacement works.
    public struct Watermarks: Sendable, Hashable {
        /// The level at which it starts, 0 ... 1.
        public var high: Double
        /// The level at which it ends, 0 ... `high`.
        public var low: Double

        /// Levels as fractions of the byte budget that puts may fill.
        /// - Parameters:
        ///   - high: the level at which it starts, 0 ... 1.
        ///   - low: the level at which it ends, 0 ... `high`.
        public init(high: Double, low: Double) {
            self.high = high
            self.low = low
        }
    }

    /// Whether a new store without a budget is logged. False for programs that set one later, or say so themselves.
    package var tellsUnlimited = true

    /// For tests: identifies the run of the machine. Nil asks the system.
    package var bootIdentity: UInt64?
    /// Whether memory is given back when the system is short of it. Tests of what is held do not depend on that.
    package var heedsMemoryPressure = true
    /// For tests: pages of an index that is walked at every open, which takes about a millisecond.
    package var smallPages: UInt64 = 1024
    /// For tests: false leaves the work after an unclean end to the readers.
    package var isScrubbing = true

    /// For tests: files that a checkpoint syncs one by one. If there are more, the whole file system is synced: 1,000
    /// files of 300 kB took 350 ms one by one on an idle ext4, and 190 ms that way.
    package var syncedSingly = 1024

    /// The defaults of the settings above.
    public init() {}

    /// The defaults of the settings above, with a budget.
    /// - Parameter budget: limits to set on the store.
    public init(budget: Budget) {
        self.budget = budget
    }

    /// The longest body that is stored inline under `budget`.
    func inlineLimit(_ budget: Budget) -> Int64 {
        budget.bytes == .unlimited ? inlineThreshold.bytes : min(inlineThreshold.bytes, budget.bytes.bytes / 64)
    }

    /// True if a body of that length becomes part of its entry's record.
    func embeds(_ length: UInt64) -> Bool {
        embeddingThreshold > .zero && length <= UInt64(clamping: embeddingThreshold.bytes)
    }

    func validate() throws(LarderError) {
        try budget?.validate()
        if inlineThreshold > .mebibytes(1) {
            throw LarderError(
                .invalidArgument,
                "an inline threshold of \(inlineThreshold.bytes) bytes is too large: the most is 1 MiB")
        }
        if embeddingThreshold > .kibibytes(2) {
            throw LarderError(
                .invalidArgument,
                "an embedding threshold of \(embeddingThreshold.bytes) bytes is too large: the most is 2 KiB")
        }
        if let indexMapSize, indexMapSize < .mebibytes(1) {
            throw LarderError(
                .invalidArgument,
                "an index map of \(indexMapSize.bytes) bytes is too small: the least is 1 MiB")
        }
        if memoryCountLimit < 1 {
            throw LarderError(.invalidArgument, "a memory count limit of \(memoryCountLimit): 1 or more")
        }
        if !(watermarks.low > 0 && watermarks.low <= watermarks.high && watermarks.high <= 1) {
            throw LarderError(
                .invalidArgument,
                "watermarks of \(watermarks.low) and \(watermarks.high): 0 < low <= high <= 1 is needed")
        }
        if let version, version.isEmpty || version.utf8.count > 200 {
            throw LarderError(.invalidArgument, "an application version has 1 to 200 bytes of UTF-8")
        }
    }
}

extension Configuration {
    /// Address space that the index takes when it is opened, in bytes. A map grows when half of it is used, so one of
    /// twice the budget need not.
    var firstMapSize: Int {
        let most = ByteCount.gibibytes(64).bytes
        guard let budget, budget.bytes.bytes < most / 2 else { return Int(most) }
        return Int(max(ByteCount.mebibytes(64).bytes, (budget.bytes.bytes * 2 + 0xF_FFFF) & ~0xF_FFFF))
    }
}
