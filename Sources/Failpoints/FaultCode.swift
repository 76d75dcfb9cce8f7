#if LARDER_FAILPOINTS
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// Names of the codes that calls can be made to fail with.
    public enum FaultCode {
        private static let codes: [String: Int32] = [
            "EIO": EIO, "ENOSPC": ENOSPC, "EDQUOT": EDQUOT, "EFBIG": EFBIG, "EMFILE": EMFILE, "ENFILE": ENFILE,
            "EACCES": EACCES, "EPERM": EPERM, "EROFS": EROFS, "EINTR": EINTR, "ENOMEM": ENOMEM, "EAGAIN": EAGAIN,
            "ENOENT": ENOENT, "EXDEV": EXDEV, "EOPNOTSUPP": EOPNOTSUPP,
            // lmdb.h, "Return Codes".
            "MDB_PAGE_NOTFOUND": -30797, "MDB_CORRUPTED": -30796, "MDB_PANIC": -30795, "MDB_MAP_FULL": -30792,
            "MDB_READERS_FULL": -30790, "MDB_TXN_FULL": -30788, "MDB_MAP_RESIZED": -30785, "MDB_BAD_RSLOT": -30783,
        ]

        /// The code with this name, or written as a number other than 0; nil if there is none.
        public static func named(_ name: String) -> Int32? {
            codes[name] ?? Int32(name).flatMap { $0 == 0 ? nil : $0 }
        }
    }
#endif
