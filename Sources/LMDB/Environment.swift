import CLMDB
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// An LMDB environment: a directory with `data.mdb` and `lock.mdb`, mapped into this process.
///
/// Open a path once per process: a second open "returns success" and breaks the locks (lmdb.h, Caveats). Do not use it
/// across `fork(2)`. All methods may be called from any thread; a write transaction stays on its thread.
public final class Environment: @unchecked Sendable {
    // SAFETY: LMDB environments are thread-safe (lmdb.h); with MDB_NOTLS read transactions may move between threads.
    // `committedPages` and `canPeekNextPage` are guarded by LMDB's writer lock: only a write transaction touches them.
    // `mapMoved` and `cipher` are set before others see the environment.
    let pointer: OpaquePointer
    let slots = ReaderSlots()
    var committedPages: Int?
    var canPeekNextPage = false
    /// Bytes per page.
    public let pageSize: Int
    /// The most the map may grow to.
    let mapLimit: Int
    /// Address space taken for the map.
    let reserved: Atomic<Int>
    let isRemapping = Atomic<Bool>(false)
    var mapMoved: () -> Void = {}
    private(set) var cipher: (any RowCipher)?

    /// Number of pooled read transactions.
    public static let slotCount = ReaderSlots.count

    /// The options with which an environment is opened.
    public struct Options: Sendable {
        /// The most address space to use, in bytes: the longest the file may become. The file grows only as needed.
        public var mapSize = 1 << 40
        /// Address space to begin with; less if very many environments are open, and quartered until the system grants
        /// it. The map grows fourfold when half of it is used (`remap`).
        public var firstMapSize = 64 << 30
        /// Size of the reader table shared by all processes.
        public var maxReaders = 1024
        /// Number of named databases.
        public var maxDatabases = 24
        /// `MDB_RDONLY`: no write transaction can begin.
        public var isReadOnly = false
        /// `MDB_NOMETASYNC`: a commit syncs its pages but not the meta page that makes them current; power loss may
        /// undo the last commit, never damage the tree.
        public var skipsMetaSync = true
        /// `MDB_NOLOCK`: for a read-only file system, on which the reader table cannot be written.
        public var skipsLocking = false

        /// The defaults of the options above.
        public init() {}
    }

    /// Opens the environment in directory `path`, creating its files unless read-only. `mdb_env_open`.
    public init(path: String, options: Options = Options()) throws(LMDBError) {
        guard LMDBLibrary.current.format != nil else { throw LMDBError.unknownLibrary }
        let size = AddressSpace.reserve(min(options.firstMapSize, options.mapSize))
        do {
            pointer = try Self.open(path: path, mapSize: size, options: options)
        } catch {
            AddressSpace.giveBack(size)
            throw error
        }
        reserved = Atomic(size)
        mapLimit = options.mapSize
        var stat = MDB_stat()
        mdb_env_stat(pointer, &stat)
        pageSize = Int(stat.ms_psize)
        keepDescriptorsFromChildren()
        if !options.skipsLocking { try clearRowsOfForerunners() }
    }

    private static func open(path: String, mapSize: Int, options: Options) throws(LMDBError) -> OpaquePointer {
        var created: OpaquePointer?
        try check(mdb_env_create(&created), "mdb_env_create")
        guard let created else { throw LMDBError(code: MDB_PANIC, function: "mdb_env_create") }
        do {
            try check(mdb_env_set_maxreaders(created, UInt32(options.maxReaders)), "mdb_env_set_maxreaders")
            try check(mdb_env_set_maxdbs(created, UInt32(options.maxDatabases)), "mdb_env_set_maxdbs")
            var flags = UInt32(MDB_NOTLS) | UInt32(MDB_NORDAHEAD)
            if options.isReadOnly { flags |= UInt32(MDB_RDONLY) }
            if options.skipsMetaSync { flags |= UInt32(MDB_NOMETASYNC) }
            if options.skipsLocking { flags |= UInt32(MDB_NOLOCK) }
            try check(mdb_env_set_mapsize(created, mapSize), "mdb_env_set_mapsize")
            try check(
                perform("mdb_env_open", at: path) { mdb_env_open(created, path, flags, 0o600) }, "mdb_env_open")
        } catch {
            // "mdb_env_close() must be called to discard the handle" when mdb_env_open fails (lmdb.h).
            mdb_env_close(created)
            // Memory checkers refuse what they cannot shadow with EINVAL.
            if error.code == ENOMEM || error.code == EINVAL, mapSize > AddressSpace.least {
                return try open(path: path, mapSize: mapSize / 4, options: options)
            }
            throw error
        }
        return created
    }

    deinit { close() }

    let isClosed = Atomic<Bool>(false)
    private let isReleased = Atomic<Bool>(false)
    /// Transactions under way that hold no slot.
    let active = Atomic<Int>(0)

    /// Waits for the transactions under way, then unmaps and closes the files. Later transactions throw
    /// `LMDBError.isClosed`. Idempotent. Do not call it from inside a transaction.
    public func close() {
        refuse()
        guard isReleased.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
        else { return }
        slots.close()
        while active.load(ordering: .sequentiallyConsistent) > 0 { sched_yield() }
        mdb_env_close(pointer)
        AddressSpace.giveBack(reserved.load(ordering: .relaxed))
    }

    /// Lets no further transaction begin: they throw `LMDBError.isClosed`. Transactions under way continue, and the
    /// file stays mapped until `close()`. For a file that turns out to be damaged.
    public func refuse() { isClosed.store(true, ordering: .sequentiallyConsistent) }

    // MARK: Transactions

    /// Runs `body` on a snapshot: in a pooled transaction if one is free, otherwise in a new one; about 0.1 us.
    @inlinable  // Saves callers in other modules a generic call.
    @inline(__always)
    public func read<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        let read = try beginPooled()
        defer { end(read) }
        return try body(ReadTransaction(read))
    }

    /// Runs `body` on a separate snapshot, for reads that last.
    @inlinable
    public func readUnpooled<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        let read = try beginUnpooled()
        defer { end(read) }
        return try body(ReadTransaction(read))
    }

    /// A read transaction under way.
    @usableFromInline
    struct Read {
        @usableFromInline let transaction: OpaquePointer
        /// Nil: the transaction is not pooled.
        @usableFromInline let slot: ReaderSlot?
        /// That of the slot, or the transaction's own.
        let space: Unmanaged<RowSpace>?
    }

    @usableFromInline
    func beginPooled() throws -> Read {
        guard let slot = slots.acquire() else { return try beginUnpooled() }
        if let read = try begin(in: slot) { return read }
        // Few rows of the table are left: this process shares those that it has.
        if let shared = slots.acquirePooled(), let read = try begin(in: shared) { return read }
        return try beginUnpooled()
    }

    /// Begins a read in a slot that was acquired. Nil, and the slot given back, if the pool may not have a further row
    /// of the reader table, or another process made the file longer than this map.
    @inline(__always)
    private func begin(in slot: ReaderSlot) throws -> Read? {
        var isBegun = false
        defer { if !isBegun { slot.unlock() } }
        if isClosed.load(ordering: .sequentiallyConsistent) { throw LMDBError.closed }
        if let pooled = slot.transaction {
            var code = perform("mdb_txn_renew", pointer) { mdb_txn_renew(pooled) }
            if code == MDB_SUCCESS { code = confirm(pooled) }
            if code == MDB_MAP_RESIZED { return nil }
            try check(code, "mdb_txn_renew")
            isBegun = true
            return Read(transaction: pooled, slot: slot, space: slot.space(cipher))
        }
        guard let fresh = try beginFirst() else { return nil }
        slot.transaction = fresh
        slots.notePooled()
        isBegun = true
        return Read(transaction: fresh, slot: slot, space: slot.space(cipher))
    }

    /// A transaction for a slot that has none; nil as above.
    private func beginFirst() throws -> OpaquePointer? {
        guard slots.mayPoolMore(pointer) else { return nil }
        do throws(LMDBError) {
            return try beginRead()
        } catch {
            if error.isReadersFull || error.isMapResized { return nil }
            throw error
        }
    }

    @usableFromInline
    func beginUnpooled() throws -> Read {
        for attempt in 0..<Int.max {
            try enter()
            do {
                let transaction = try beginRead()
                let space = cipher.map { Unmanaged.passRetained(RowSpace($0)) }
                return Read(transaction: transaction, slot: nil, space: space)
            } catch {
                leave()
                guard error.isMapResized, try followMap(attempt) else { throw error }
            }
        }
        throw LMDBError(code: MDB_MAP_RESIZED, function: "mdb_txn_begin")
    }

    @usableFromInline
    func end(_ read: Read) {
        if let slot = read.slot {
            mdb_txn_reset(read.transaction)
            if let space = read.space { space.takeUnretainedValue().trim() }
            slot.unlock()
        } else {
            mdb_txn_abort(read.transaction)
            read.space?.release()
            leave()
        }
    }

    /// Keeps the environment open, and the map where it is, until `leave()`.
    func enter() throws(LMDBError) {
        while true {
            active.wrappingAdd(1, ordering: .sequentiallyConsistent)
            if isClosed.load(ordering: .sequentiallyConsistent) {
                leave()
                throw LMDBError.closed
            }
            if !isRemapping.load(ordering: .sequentiallyConsistent) { return }
            leave()
            sched_yield()
        }
    }

    func leave() { active.wrappingSubtract(1, ordering: .sequentiallyConsistent) }

    func beginRead() throws(LMDBError) -> OpaquePointer {
        var transaction: OpaquePointer?
        let begin = {
            perform("mdb_txn_begin.read", self.pointer) {
                mdb_txn_begin(self.pointer, nil, UInt32(MDB_RDONLY), &transaction)
            }
        }
        var code = begin()
        if code == MDB_READERS_FULL, try clearDeadReaders() > 0 { code = begin() }
        if code == MDB_READERS_FULL, slots.releaseIdle() > 0 { code = begin() }
        try check(code, "mdb_txn_begin")
        guard let transaction else { throw LMDBError(code: MDB_PANIC, function: "mdb_txn_begin") }
        code = confirm(transaction)
        if code != MDB_SUCCESS {
            mdb_txn_abort(transaction)
            throw LMDBError(code: code, function: "mdb_txn_renew")
        }
        return transaction
    }

    /// Takes the snapshot again if the state that was copied may be a later one than the reader table says. LMDB enters
    /// the number of the snapshot there first, and a thread can be stopped before it copies the roots for as long as
    /// two commits take (mdb_txn_renew0). For LMDB this is harmless, because it keeps everything that was freed since.
    /// But pages that are punched because they lie behind the end of that snapshot would be missing.
    @inline(__always)
    private func confirm(_ transaction: OpaquePointer) -> Int32 {
        // The transaction after the next one overwrites the meta page of a snapshot.
        while lastTransaction > UInt64(mdb_txn_id(transaction)) + 1 {
            mdb_txn_reset(transaction)
            let code = mdb_txn_renew(transaction)
            if code != MDB_SUCCESS { return code }
        }
        return MDB_SUCCESS
    }

    /// Waits for the writer lock and begins the write transaction. `mdb_txn_begin`.
    public func beginWrite() throws(LMDBError) -> WriteTransaction {
        var transaction: OpaquePointer?
        for attempt in 0..<Int.max {
            try enter()
            growMap()
            let code = perform("mdb_txn_begin.write", pointer) { mdb_txn_begin(pointer, nil, 0, &transaction) }
            if code == MDB_SUCCESS { break }
            leave()
            guard code == MDB_MAP_RESIZED, try followMap(attempt) else {
                throw LMDBError(code: code, function: "mdb_txn_begin")
            }
        }
        guard let transaction else { throw LMDBError(code: MDB_PANIC, function: "mdb_txn_begin") }
        let pages = lastPage + 1
        committedPages = pages
        canPeekNextPage = Self.nextPage(of: transaction) == pages
        return WriteTransaction(pointer: transaction, environment: self, cipher)
    }

    /// Runs `body` in a write transaction; commits when it returns, aborts when it throws.
    public func write<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        let transaction = try beginWrite()
        defer { transaction.abort() }
        let result = try body(transaction)
        try transaction.commit()
        return result
    }

    static func nextPage(of transaction: OpaquePointer) -> Int {
        // SAFETY: MDB_txn is larger than this in every release; the value is checked before it is used.
        Int(
            bitPattern: UnsafeRawPointer(transaction).load(
                fromByteOffset: LMDBLibrary.current.nextPageOffset, as: UInt.self))
    }

    /// Opens a named database, creating it if `create` is set; nil if it does not exist. `mdb_dbi_open`.
    /// - Parameters:
    ///   - number: what binds rows to the database, where they are sealed; other than that of all other databases.
    ///     Default: 0, for one whose rows are not.
    ///   - sealing: how they are sealed then. Default: no part of keys is hidden.
    public func openDatabase(
        _ name: String, order: KeyOrder, create: Bool, number: UInt8 = 0, sealing: RowSealing = RowSealing()
    ) throws -> Database? {
        var handle: MDB_dbi = 0
        let flags = order.flags | (create ? UInt32(MDB_CREATE) : 0)
        if create {
            try write { transaction in
                let code = perform("mdb_dbi_open.create", pointer) {
                    mdb_dbi_open(transaction.reading.pointer, name, flags, &handle)
                }
                try check(code, "mdb_dbi_open")
            }
            return Database(handle: handle, number: number, sealing: sealing)
        }
        // A handle opened in a read transaction becomes shared when that transaction commits, not when it aborts.
        let transaction = try beginRead()
        let code = perform("mdb_dbi_open", pointer) { mdb_dbi_open(transaction, name, flags, &handle) }
        guard code == MDB_SUCCESS else {
            mdb_txn_abort(transaction)
            if code == MDB_NOTFOUND { return nil }
            throw LMDBError(code: code, function: "mdb_dbi_open")
        }
        try check(mdb_txn_commit(transaction), "mdb_txn_commit")
        return Database(handle: handle, number: number, sealing: sealing)
    }

    /// Seals every row from now on, and opens those that are read: values are encrypted, and names in keys hidden. What
    /// a lookup returns is then valid until the transaction has looked up 15 more rows. Call it before the first
    /// transaction.
    public func sealRows(with cipher: any RowCipher) { self.cipher = cipher }

    /// Whether rows are sealed.
    public var sealsRows: Bool { cipher != nil }

    /// Bytes that the value of a row takes.
    public func valueLength(_ database: Database, key: Int, value: Int) -> Int {
        cipher.map { RowSpace.length(database, key: key, value: value, $0) } ?? value
    }

    // MARK: The file

    /// Number of the last page in use by the latest commit (`me_last_pgno` of `mdb_env_info`).
    public var lastPage: Int { Int(clamping: info.me_last_pgno) }

    /// Number of the latest committed transaction (`me_last_txnid`). An overwritten head may contain any number, and
    /// must not end the process.
    public var lastTransaction: UInt64 { UInt64(truncatingIfNeeded: info.me_last_txnid) }

    /// As `lastTransaction`, for callers outside a transaction.
    public func latestTransaction() throws(LMDBError) -> UInt64 {
        try enter()
        defer { leave() }
        return lastTransaction
    }

    var info: MDB_envinfo {
        var info = MDB_envinfo()
        mdb_env_info(pointer, &info)
        return info
    }

    /// Runs `body` with the descriptor of `data.mdb`, which the environment owns. `mdb_env_get_fd`.
    public func withDataDescriptor<R>(_ body: (Int32) throws -> R) throws -> R {
        try enter()
        defer { leave() }
        return try body(dataDescriptor)
    }

    /// The descriptor of `data.mdb`, for callers inside a transaction, which keeps the environment open.
    public var dataDescriptor: Int32 {
        var descriptor: Int32 = -1
        mdb_env_get_fd(pointer, &descriptor)
        return descriptor
    }

    /// The longest key LMDB accepts, in bytes: 511 as 0.9 is usually compiled, more since 1.0.
    /// `mdb_env_get_maxkeysize`.
    public var maxKeySize: Int { Int(mdb_env_get_maxkeysize(pointer)) }

    /// Syncs the file, the meta page included: earlier commits then survive power loss. `mdb_env_sync`.
    public func sync() throws(LMDBError) {
        try enter()
        defer { leave() }
        try check(perform("mdb_env_sync", pointer) { mdb_env_sync(pointer, 1) }, "mdb_env_sync")
    }

    /// Frees the reader slots of processes that died; returns their number. `mdb_reader_check`.
    @discardableResult
    public func clearDeadReaders() throws(LMDBError) -> Int {
        try enter()
        defer { leave() }
        var dead: Int32 = 0
        try check(perform("mdb_reader_check", pointer) { mdb_reader_check(pointer, &dead) }, "mdb_reader_check")
        return Int(dead)
    }
}
