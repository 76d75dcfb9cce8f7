import CLMDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A failed LMDB call: the function, and LMDB's or the system's return code.
///
/// Codes are listed in `lmdb.h` under "Return Codes": negative values are LMDB's own, positive ones are `errno`s.
public struct LMDBError: Error, Hashable, CustomStringConvertible {
    /// LMDB's return code.
    public let code: Int32
    /// The C function that returned it.
    public let function: String

    /// Describes the failure of `function`.
    public init(code: Int32, function: String) {
        self.code = code
        self.function = function
    }

    /// The function, LMDB's text for the code (`mdb_strerror`), and the code.
    public var description: String {
        "\(function): \(String(cString: mdb_strerror(code))) (\(code))"
    }

    /// The environment is closed, or is being closed.
    public var isClosed: Bool { code == ECANCELED }
    static let closed = LMDBError(code: ECANCELED, function: "mdb_env_close")

    /// `MDB_KEYEXIST`: the key already exists, or a greater one exists although the new one was to be appended as the
    /// greatest.
    public var isKeyThere: Bool { code == MDB_KEYEXIST }
    /// `MDB_MAP_FULL`: the map size is used up.
    public var isMapFull: Bool { code == MDB_MAP_FULL }
    /// `MDB_READERS_FULL`: every slot of the reader table is taken.
    public var isReadersFull: Bool { code == MDB_READERS_FULL }
    /// The file is not an LMDB file, of another version, or damaged. A transaction that met a damaged page reports
    /// `MDB_BAD_TXN` from then on.
    public var isDamage: Bool {
        [MDB_INVALID, MDB_VERSION_MISMATCH, MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_INCOMPATIBLE, MDB_BAD_TXN]
            .contains(code)
    }
    /// `MDB_MAP_RESIZED`: another process uses a larger map, and this one could not follow.
    public var isMapResized: Bool { code == MDB_MAP_RESIZED }
    /// A write for which the disk had only part of the room: `EIO` of LMDB 0.9 (`mdb_page_flush`, "short write"),
    /// `MDB_SHORT_WRITE` of 1.0.
    public var isShortWrite: Bool { code == EIO || code == -30772 }
    /// This module does not know the library's file format: see `LMDBLibrary.format`.
    public var isUnknownLibrary: Bool { code == ENOTSUP }
    static let unknownLibrary = LMDBError(code: ENOTSUP, function: "mdb_version")
    /// `MDB_PANIC`: "Update of meta page failed or environment had fatal error" (lmdb.h). The environment refuses every
    /// further transaction; the file is as its last whole commit left it, and can be opened again.
    public var isHalted: Bool { code == MDB_PANIC }
    /// The file system is full (`ENOSPC`, `EDQUOT`, or `EFBIG` at a resource limit).
    public var isNoSpace: Bool { code == ENOSPC || code == EDQUOT || code == EFBIG }
}

@inline(__always)
func check(_ code: Int32, _ function: StaticString) throws(LMDBError) {
    guard code != MDB_SUCCESS else { return }
    throw LMDBError(code: code, function: "\(function)")
}
