import CLMDB

/// Where a transaction opens sealed rows. The latest `count` rows that were looked up stay where they are; the oldest
/// makes room for the next. Those of a cursor have a place of their own.
///
/// A sealed row holds the length of its value (u32) and of its key (u16), two zero bytes, the value, the key, and zeros
/// up to a multiple of the granularity of its database, native byte order; so its length tells neither of the two.
final class RowSpace {
    let cipher: any RowCipher
    /// Whether the heads of values on pages of their own are looked at before they are opened: see
    /// `ReadTransaction.checkHead`.
    private let checksHeads: Bool
    private var buffers: [UnsafeMutableRawBufferPointer] = []
    private var next = 0

    private static let count = 16
    private static let headLength = 8

    init(_ cipher: any RowCipher, checksHeads: Bool = false) {
        self.cipher = cipher
        self.checksHeads = checksHeads
    }

    deinit { for buffer in buffers { buffer.deallocate() } }

    /// Gives back what long rows took; between two transactions.
    func trim() {
        for place in buffers.indices where buffers[place].count > Self.longest {
            buffers[place].deallocate()
            buffers[place] = .allocate(byteCount: Self.shortest, alignment: 16)
        }
    }

    private static let shortest = 1024
    private static let longest = 16 << 10

    private func buffer(_ length: Int) -> UnsafeMutableRawBufferPointer {
        if buffers.count < Self.count {
            buffers.append(.allocate(byteCount: max(length, Self.shortest), alignment: 16))
        }
        let place = next % buffers.count
        next = (next + 1) % Self.count
        if buffers[place].count < length {
            buffers[place].deallocate()
            buffers[place] = .allocate(byteCount: length, alignment: 16)
        }
        return UnsafeMutableRawBufferPointer(rebasing: buffers[place][..<length])
    }

    // MARK: Keys

    /// Runs `body` with the key as it is stored.
    func withStored<R, E: Error>(
        _ database: Database, _ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        guard let hidden = database.sealing.hidden.range(in: key) else { return try body(key) }
        // On the heap: a temporary allocation takes no typed errors.
        let stored = UnsafeMutableRawBufferPointer.allocate(
            byteCount: key.count - hidden.count + HiddenKey.length, alignment: 8)
        defer { stored.deallocate() }
        let tail = hidden.lowerBound + HiddenKey.length
        withUnsafeTemporaryAllocation(byteCount: 1 + hidden.count, alignment: 8) { name in
            name[0] = database.number
            UnsafeMutableRawBufferPointer(rebasing: name[1...]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: key[hidden]))
            cipher.hide(
                UnsafeRawBufferPointer(name),
                into: UnsafeMutableRawBufferPointer(rebasing: stored[hidden.lowerBound..<tail]))
        }
        if hidden.lowerBound > 0 {
            UnsafeMutableRawBufferPointer(rebasing: stored[..<hidden.lowerBound]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: key[..<hidden.lowerBound]))
        }
        if hidden.upperBound < key.count {
            UnsafeMutableRawBufferPointer(rebasing: stored[tail...]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: key[hidden.upperBound...]))
        }
        return try body(UnsafeRawBufferPointer(stored))
    }

    private func withPlace<R>(
        _ database: Database, _ stored: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R
    ) -> R {
        withUnsafeTemporaryAllocation(byteCount: 1 + stored.count, alignment: 8) { place in
            place[0] = database.number
            UnsafeMutableRawBufferPointer(rebasing: place[1...]).copyMemory(from: stored)
            return body(UnsafeRawBufferPointer(place))
        }
    }

    // MARK: Rows

    /// The length of a sealed row.
    func length(_ database: Database, key: Int, value: Int) -> Int {
        Self.length(database, key: key, value: value, cipher)
    }

    static func length(_ database: Database, key: Int, value: Int, _ cipher: any RowCipher) -> Int {
        let granularity = database.sealing.granularity
        return (headLength + value + key + granularity - 1) / granularity * granularity + cipher.overhead
    }

    /// Seals a row into `target`, which has the length for it.
    /// - Parameter fill: writes all of the value.
    func seal(
        _ database: Database, key: UnsafeRawBufferPointer, stored: UnsafeRawBufferPointer, count: Int,
        into target: UnsafeMutableRawBufferPointer, fill: (UnsafeMutableRawBufferPointer) -> Void
    ) {
        withUnsafeTemporaryAllocation(byteCount: target.count - cipher.overhead, alignment: 16) { row in
            let end = Self.headLength + count
            row.initializeMemory(as: UInt8.self, repeating: 0)
            row.storeBytes(of: UInt32(count), as: UInt32.self)
            row.storeBytes(of: UInt16(key.count), toByteOffset: 4, as: UInt16.self)
            fill(UnsafeMutableRawBufferPointer(rebasing: row[Self.headLength..<end]))
            UnsafeMutableRawBufferPointer(rebasing: row[end..<end + key.count]).copyMemory(from: key)
            withPlace(database, stored) { cipher.seal(UnsafeRawBufferPointer(row), into: target, at: $0) }
        }
    }

    /// Opens a row; nil for one that cannot be opened.
    /// - Parameter own: where it is opened. Nil: with the others.
    func open(
        _ database: Database, _ stored: UnsafeRawBufferPointer, _ sealed: UnsafeRawBufferPointer, in own: OpenedRow?
    ) -> Cursor.Pair? {
        guard sealed.count >= cipher.overhead + Self.headLength else { return nil }
        let length = sealed.count - cipher.overhead
        let row = own?.buffer(length) ?? buffer(length)
        guard withPlace(database, stored, { cipher.open(sealed, into: row, at: $0) }) else { return nil }
        let count = Int(row.load(as: UInt32.self))
        let keyCount = Int(row.load(fromByteOffset: 4, as: UInt16.self))
        let end = Self.headLength + count
        guard end + keyCount <= row.count else { return nil }
        let raw = UnsafeRawBufferPointer(row)
        return (
            UnsafeRawBufferPointer(rebasing: raw[end..<end + keyCount]),
            UnsafeRawBufferPointer(rebasing: raw[Self.headLength..<end])
        )
    }

    /// The value of the row that was found under `key`; an empty one, as a damaged row may have, if it cannot be
    /// opened.
    func value(
        _ database: Database, _ key: UnsafeRawBufferPointer, _ stored: UnsafeRawBufferPointer,
        _ sealed: UnsafeRawBufferPointer, in own: OpenedRow? = nil, of transaction: OpaquePointer
    ) throws(LMDBError) -> UnsafeRawBufferPointer {
        if checksHeads { try checkValueHead(of: sealed, keyCount: stored.count, in: transaction) }
        // Two names with one hidden form: there are none in practice.
        guard let found = open(database, stored, sealed, in: own), found.key.elementsEqual(key) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return found.value
    }
}

/// Rows of a cursor, or of a position: the latest two stay where they are, whatever else is read.
final class OpenedRow {
    private var latest = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var earlier = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    deinit {
        latest.deallocate()
        earlier.deallocate()
    }

    func buffer(_ length: Int) -> UnsafeMutableRawBufferPointer {
        (latest, earlier) = (earlier, latest)
        if latest.count < length {
            latest.deallocate()
            latest = .allocate(byteCount: max(length, 512), alignment: 16)
        }
        return UnsafeMutableRawBufferPointer(rebasing: latest[..<length])
    }
}

extension ReadTransaction {
    /// `get`, where rows are sealed.
    @inline(never)
    func getSealed(
        _ space: RowSpace, _ database: Database, _ key: UnsafeRawBufferPointer
    ) throws(LMDBError) -> UnsafeRawBufferPointer? {
        let pointer = pointer
        return try space.withStored(database, key) { stored throws(LMDBError) in
            var name = MDB_val(stored)
            var value = MDB_val()
            let code = perform("mdb_get", in: pointer) { mdb_get(pointer, database.handle, &name, &value) }
            if code == MDB_NOTFOUND || code == MDB_BAD_VALSIZE { return nil }
            try check(code, "mdb_get")
            return try space.value(database, key, stored, UnsafeRawBufferPointer(value), of: pointer)
        }
    }
}

extension WriteTransaction {
    /// Stores a sealed row; what is there with `MDB_NOOVERWRITE` is returned instead.
    /// - Parameter flags: of `mdb_put`.
    @inline(never)
    func putSealed(
        _ space: RowSpace, _ database: Database, _ key: UnsafeRawBufferPointer, count: Int, flags: UInt32,
        fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws(LMDBError) -> UnsafeRawBufferPointer? {
        let transaction = reading.pointer
        return try space.withStored(database, key) { stored throws(LMDBError) in
            var name = MDB_val(stored)
            var value = MDB_val(mv_size: space.length(database, key: key.count, value: count), mv_data: nil)
            let code = perform("mdb_put", in: transaction) {
                mdb_put(transaction, database.handle, &name, &value, flags | UInt32(MDB_RESERVE))
            }
            if code == MDB_KEYEXIST, flags & UInt32(MDB_NOOVERWRITE) != 0 {
                return try space.value(database, key, stored, UnsafeRawBufferPointer(value), of: transaction)
            }
            try check(code, "mdb_put")
            hasChanges = true
            space.seal(
                database, key: key, stored: stored, count: count,
                into: UnsafeMutableRawBufferPointer(start: value.mv_data, count: value.mv_size), fill: fill)
            return nil
        }
    }

    /// `delete`, where rows are sealed. A row that cannot be opened goes by the key as it is stored.
    @inline(never)
    func deleteSealed(
        _ space: RowSpace, _ database: Database, _ key: UnsafeRawBufferPointer
    ) throws(LMDBError) -> Bool {
        if try space.withStored(database, key, { stored throws(LMDBError) in try deleteStored(database, stored) }) {
            return true
        }
        if database.sealing.hidden == .none { return false }
        return try deleteStored(database, key)
    }
}
