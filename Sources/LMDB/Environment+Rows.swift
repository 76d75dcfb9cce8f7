import CLMDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension Environment {
    /// Frees the rows of the reader table that an earlier process with the id of this one left when it died; returns
    /// how many. Call it before the first transaction.
    ///
    /// `mdb_reader_check` skips rows with the id of the process that calls it, and to other processes such rows look
    /// alive, because this process holds the lock on its id. In a container, whose processes get the same ids each
    /// time, they would keep pages from being reused for as long as any process has the file open.
    ///
    /// Throws `EAGAIN` or `EACCES` of `mdb_txn_begin` if a process with the same id, in another PID namespace, has the
    /// file open.
    @discardableResult
    func clearRowsOfForerunners() throws(LMDBError) -> Int {
        let id = getpid()
        let isSuspicious = rowOwners().contains(id)
        let before = isSuspicious ? readerTable() : nil
        // Takes the lock on the id, for as long as the environment is open.
        let transaction = try beginRead()
        let after = isSuspicious ? readerTable() : nil
        mdb_txn_abort(transaction)
        guard let before, let after, before.bytes.count == after.bytes.count else { return 0 }
        let old = Self.offsets(of: id, in: before.bytes)
        // The row that this very transaction took shows where rows are.
        guard let own = Self.offsets(of: id, in: after.bytes).first(where: { !old.contains($0) }) else { return 0 }
        var count = 0
        for offset in old where (offset - own) % Self.rowLength == 0 {
            // As mdb_reader_check frees a row: no one else touches it while the id that it names is locked.
            var none: Int32 = 0
            if pwrite(before.descriptor, &none, 4, off_t(offset + Self.ownerOffset)) == 4 { count += 1 }
        }
        return count
    }

    /// `struct MDB_reader`: transaction (8 bytes), process (4, then 4 of padding), thread (8), filled up to a cache
    /// line of 64.
    private static let rowLength = 64
    private static let ownerOffset = 8

    /// Where rows with this owner may be.
    private static func offsets(of id: Int32, in bytes: [UInt8]) -> [Int] {
        bytes.withUnsafeBytes { raw in
            stride(from: 0, through: raw.count - rowLength, by: 8).filter { offset in
                raw.loadUnaligned(fromByteOffset: offset + ownerOffset, as: Int32.self) == id
                    && raw.loadUnaligned(fromByteOffset: offset + ownerOffset + 4, as: Int32.self) == 0
            }
        }
    }

    /// The bytes of `lock.mdb`, through LMDB's own descriptor: closing another one would drop its fcntl(2) locks. Nil
    /// if that descriptor cannot be determined.
    private func readerTable() -> (descriptor: Int32, bytes: [UInt8])? {
        // SAFETY: `struct MDB_env` begins with `me_fd` and `me_lfd` in every release since 0.9.9; it is checked below
        // that they are files of one directory's device, and that the second begins with the lock file's magic
        // (`MDB_MAGIC`).
        let words = UnsafeRawPointer(pointer)
        let descriptor = words.load(fromByteOffset: 4, as: Int32.self)
        var (data, lock) = (stat(), stat())
        guard words.load(as: Int32.self) == dataDescriptor, descriptor > 2, descriptor != dataDescriptor,
            fstat(dataDescriptor, &data) == 0, fstat(descriptor, &lock) == 0, data.st_dev == lock.st_dev,
            data.st_ino != lock.st_ino, lock.st_size >= 128, lock.st_size <= 1 << 20
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(lock.st_size))
        guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count,
            bytes.withUnsafeBytes({ $0.loadUnaligned(as: UInt32.self) }) == 0xBEEF_C0DE
        else { return nil }
        return (descriptor, bytes)
    }

    /// The processes that rows of the reader table name. `mdb_reader_list`.
    private func rowOwners() -> Set<Int32> {
        final class Lines { var owners: Set<Int32> = [] }
        let lines = Lines()
        _ = withExtendedLifetime(lines) {
            mdb_reader_list(
                pointer,
                { text, context in
                    guard let text, let context else { return 0 }
                    let owner = String(cString: text).split(whereSeparator: \.isWhitespace).first.flatMap { Int32($0) }
                    if let owner { Unmanaged<Lines>.fromOpaque(context).takeUnretainedValue().owners.insert(owner) }
                    return 0
                },
                Unmanaged.passUnretained(lines).toOpaque())
        }
        return lines.owners
    }
}
