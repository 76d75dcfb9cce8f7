/// The layout of a data file's pages: one of LMDB's two data versions.
///
/// A library reads and writes one of them, and refuses the other with `MDB_VERSION_MISMATCH`. Code that reads pages
/// without LMDB reads both: the walk over pages, and so the repair that converts an index of the other version.
public enum PageFormat: UInt32, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Data version 1: every release of LMDB 0.9.
    case version1 = 1
    /// Data version 3: LMDB 1.0. A page records the transaction that wrote it, offsets count from the end of its head,
    /// and pages may have 64 KiB.
    case version3 = 3

    /// The format of the library that this program runs with; nil if this module does not know it.
    public static var current: PageFormat? { LMDBLibrary.current.format }

    /// Bytes of a page's head (`PAGEHDRSZ`).
    var headerLength: Int { self == .version1 ? 16 : 24 }
    /// Where offsets within a page count from (`PAGEBASE`).
    var base: Int { self == .version1 ? 0 : headerLength }
    /// Bytes in a leaf that name the pages of a big value: a page number, or `MDB_ovpage`.
    var referenceLength: Int { self == .version1 ? 8 : 24 }
    /// LMDB writes pages of the system's size up to this (`MAX_PAGESIZE`).
    var pageSizes: ClosedRange<Int> { 512...(self == .version1 ? 32768 : 65536) }
    /// Bytes of the head of a file: a page's head and `MDB_meta`.
    var metaLength: Int { headerLength + 136 }

    /// Bytes that a key takes in its node: since 1.0 the value after it begins at an even place.
    func keySpace(_ count: Int) -> Int { self == .version1 ? count : (count + 1) & ~1 }

    /// The largest item of a leaf that is not moved to pages of its own (`me_nodemax`): two fit a page.
    func largestNode(pageSize: Int) -> Int { (((pageSize - headerLength) / 2) & ~1) - 2 }

    /// The longest key: `MDB_MAXKEYSIZE` as usually compiled, since 1.0 what leaves room for the root of a tree.
    func longestKey(pageSize: Int) -> Int {
        self == .version1 ? 511 : largestNode(pageSize: pageSize) - (PageView.nodeHeaderLength + TreeRecord.length)
    }

    /// Pages that a value of `size` bytes takes when it does not fit a page of a tree (`OVPAGES`).
    func overflowPages(_ size: UInt64, pageSize: Int) -> UInt64 {
        (UInt64(headerLength) - 1 + size) / UInt64(pageSize) + 1
    }

    /// The releases that write it.
    public var description: String { self == .version1 ? "LMDB 0.9" : "LMDB 1.0" }
}
