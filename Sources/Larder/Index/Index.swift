import LMDB

/// The databases of a store and the keys of their rows. `docs/format.md` describes each one.
struct Index: Sendable {
    let environment: Environment

    /// `state`, versions.
    let meta: Database
    /// Index key -> `EntryRecord`.
    let entries: Database
    /// Stamp of the last access -> index key, for entries that may be displaced. Oldest first.
    let recency: Database
    /// Stamp of the last access -> index key, for pinned entries.
    let pinned: Database
    /// Expiry, entry id -> index key, for entries that expire and may be displaced.
    let expiry: Database
    /// Tag, zero, entry id -> index key.
    let tags: Database
    /// Session, entry id -> index key.
    let sessions: Database
    /// Digest -> `DigestRecord`.
    let digests: Database
    /// Blob id -> `BlobRecord`, and the body where it is inline.
    let blobs: Database
    /// Staging token -> blob id, for body files that may still lie in `staging/`.
    let unpublished: Database
    /// Tags whose entries are pinned -> nothing.
    let pinnedTags: Database
    /// Kind, digest of key or tag, lease id -> expiry, instance.
    let leases: Database

    /// Names, orders, and how rows are sealed in an encrypted store. The length of a row does not say how long a
    /// name is.
    static let names: [(String, KeyOrder, RowSealing)] = [
        ("meta", .bytes, RowSealing(hidden: .whole, granularity: 128)),
        ("entries", .bytes, RowSealing(hidden: .whole, granularity: 128)),
        ("recency", .integer, RowSealing(granularity: 128)),
        ("pinned", .integer, RowSealing(granularity: 128)),
        ("expiry", .bytes, RowSealing(granularity: 128)),
        ("tags", .bytes, RowSealing(hidden: .tag, granularity: 128)),
        ("sessions", .bytes, RowSealing(granularity: 128)),
        ("digests", .bytes, RowSealing(hidden: .whole)),
        ("blobs", .integer, RowSealing()),
        ("unpublished", .bytes, RowSealing()),
        ("pinnedTags", .bytes, RowSealing(hidden: .whole, granularity: 128)),
        ("leases", .bytes, RowSealing(hidden: .subject)),
    ]

    /// Opens the databases; nil if `create` is false and one is missing.
    init?(environment: Environment, create: Bool) throws {
        self.environment = environment
        var opened: [Database] = []
        for (place, (name, order, sealing)) in Self.names.enumerated() {
            func open(create: Bool) throws -> Database? {
                try environment.openDatabase(
                    name, order: order, create: create, number: Self.number(of: place), sealing: sealing)
            }
            guard let database = try open(create: false) ?? (create ? open(create: true) : nil) else { return nil }
            opened.append(database)
        }
        meta = opened[0]
        entries = opened[1]
        recency = opened[2]
        pinned = opened[3]
        expiry = opened[4]
        tags = opened[5]
        sessions = opened[6]
        digests = opened[7]
        blobs = opened[8]
        unpublished = opened[9]
        pinnedTags = opened[10]
        leases = opened[11]
    }

    /// What binds sealed rows to a database, by its place in `names`.
    static func number(of place: Int) -> UInt8 { UInt8(place + 1) }

    /// All of them, for page counts.
    var databases: [Database] {
        [meta, entries, recency, pinned, expiry, tags, sessions, digests, blobs, unpublished, pinnedTags, leases]
    }

    /// The database of that name.
    func database(_ name: String) -> Database? {
        Self.names.firstIndex { $0.0 == name }.map { databases[$0] }
    }

    static let stateKey = Array("state".utf8)

    /// The row `state`. Throws `corruption` if it is missing or not one.
    func state(_ transaction: ReadTransaction) throws -> StoreState {
        guard let raw = try transaction.get(meta, Self.stateKey), var state = StoreState(raw) else {
            throw LarderError(
                .corruption, "the index has no readable state row", remedy: .rebuildIndex)
        }
        state.budget.pageSize = environment.pageSize
        return state
    }

    /// The number that stands for an application version in records; nil if it was never used. Version "" is 0.
    func versionNumber(_ version: String, _ transaction: ReadTransaction) throws -> UInt16? {
        if version.isEmpty { return 0 }
        return try transaction.get(meta, Self.versionKey(version)).flatMap { $0.count == 2 ? $0.field(0) : nil }
    }

    /// Every application version that has a number.
    func versions(_ transaction: ReadTransaction) throws -> [String: UInt16] {
        let prefix = Self.versionKey("")
        return try transaction.withCursor(meta) { cursor in
            var found: [String: UInt16] = [:]
            var pair = try cursor.first()
            // Hidden keys are in no order.
            while let (key, value) = pair {
                if key.hasPrefix(prefix), value.count == 2 {
                    found[String(decoding: key[prefix.count...], as: UTF8.self)] = value.field(0)
                }
                pair = try cursor.next()
            }
            return found
        }
    }

    static func versionKey(_ version: String) -> [UInt8] { Array("version:".utf8) + Array(version.utf8) }

    /// Calls `body` with every entry whose record can be read, in the order of index keys.
    func forEachEntry(
        _ transaction: ReadTransaction, _ body: (UnsafeRawBufferPointer, EntryRecord) throws -> Void
    ) throws {
        try transaction.withCursor(entries) { cursor in
            var pair = try cursor.first()
            while let (key, value) = pair {
                if let record = EntryRecord(value) { try body(key, record) }
                pair = try cursor.next()
            }
        }
    }

    /// Whether rows are in the order of their keys: not where those are hidden.
    var isOrdered: Bool { !environment.sealsRows }

    /// True if a record lies in a page beside others, and not in pages of its own. LMDB puts two at least in a page.
    func fitsPage(_ key: [UInt8], _ record: EntryRecord) -> Bool {
        key.count + environment.valueLength(entries, key: key.count, value: record.byteCount)
            <= environment.pageSize / 2 - 32
    }

    // MARK: Keys of rows

    /// Times before 1970 sort as 1970.
    static func expiryKey(_ expires: Int64, id: UInt64) -> [UInt8] {
        bigEndian(UInt64(max(0, expires))) + bigEndian(id)
    }

    /// What the rows of entries that expired by `moment` sort before.
    static func expiryEnd(_ moment: Timestamp) -> [UInt8] { bigEndian(UInt64(max(0, moment.microseconds)) + 1) }

    static func tagPrefix(_ tag: String) -> [UInt8] { Array(tag.utf8) + [0] }
    static func tagKey(_ tag: String, id: UInt64) -> [UInt8] { tagPrefix(tag) + bigEndian(id) }
    static func sessionKey(_ session: UInt64, id: UInt64) -> [UInt8] { bigEndian(session) + bigEndian(id) }
}

extension UnsafeRawBufferPointer {
    /// True if the bytes start with `prefix`.
    @inline(__always)
    func hasPrefix(_ prefix: [UInt8]) -> Bool {
        guard !prefix.isEmpty else { return true }
        guard count >= prefix.count, let baseAddress else { return false }
        return memcmp(baseAddress, prefix, prefix.count) == 0
    }

    /// True if these are the same bytes.
    package func isEqual(to other: [UInt8]) -> Bool { count == other.count && hasPrefix(other) }
}
