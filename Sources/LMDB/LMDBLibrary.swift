import CLMDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The LMDB library that this program runs with, which need not be the one with which it was built.
public struct LMDBLibrary: Sendable, Hashable, CustomStringConvertible {
    /// The first number of the release.
    public let major: Int
    /// The second number of the release.
    public let minor: Int
    /// The third number of the release.
    public let patch: Int

    /// A release.
    public init(major: Int, minor: Int, patch: Int) {
        self.major = major
        self.minor = minor
        self.patch = patch
    }

    /// The library that is loaded. `mdb_version`.
    public static let current: LMDBLibrary = {
        var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
        mdb_version(&major, &minor, &patch)
        return LMDBLibrary(major: Int(major), minor: Int(minor), patch: Int(patch))
    }()

    /// The layout of its files; nil for a release that is too old (`mdb_txn_id` came with 0.9.17), a development
    /// version (0.9.70 and 0.9.90 are the names of branches before 1.0), or one after 1.x.
    public var format: PageFormat? {
        switch (major, minor) {
        case (0, 9) where (17..<70).contains(patch): .version1
        case (1, _): .version3
        default: nil
        }
    }

    /// Where `struct MDB_txn` has `mt_next_pgno`, in bytes; see `WriteTransaction.appendedPages`. Since 1.0 a count and
    /// a mutex come before it.
    var nextPageOffset: Int { format == .version3 ? 24 + MemoryLayout<pthread_mutex_t>.stride : 16 }

    /// `0.9.24`.
    public var description: String { "\(major).\(minor).\(patch)" }
}
