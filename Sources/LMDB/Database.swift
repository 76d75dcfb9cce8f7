import CLMDB

/// A named database (B-tree) of an environment. The handle is valid in every transaction of that environment.
public struct Database: Sendable, Hashable {
    let handle: MDB_dbi
    /// Binds its rows to it, where rows are sealed. 0: its rows never are.
    var number: UInt8 = 0
    /// How its rows are sealed then.
    var sealing = RowSealing()

    /// LMDB's own list of free pages: `FREE_DBI` in `mdb.c`, what `mdb_stat -f` reads. Read-only.
    static let freeList = Database(handle: 0)
    /// The unnamed root database that holds the named ones.
    static let main = Database(handle: 1)
}

/// The order of the keys of a database.
public enum KeyOrder: Sendable {
    /// Compared as bytes.
    case bytes
    /// Compared as 64-bit unsigned integers in the machine's byte order (`MDB_INTEGERKEY`).
    case integer

    var flags: UInt32 { self == .integer ? UInt32(MDB_INTEGERKEY) : 0 }
}

/// Page and entry counts of a database (`mdb_stat`); O(1).
public struct DatabaseStatistics: Sendable, Hashable {
    /// Height of the tree.
    public let depth: Int
    /// Number of key-value pairs.
    public let entries: Int
    /// Pages in use by the tree: branch, leaf and overflow pages together.
    public let pages: Int
    /// The part of these that are branch and leaf pages: no more than that can be copied.
    public let treePages: Int

    init(_ stat: MDB_stat) {
        depth = Int(stat.ms_depth)
        entries = Int(stat.ms_entries)
        treePages = Int(stat.ms_branch_pages) + Int(stat.ms_leaf_pages)
        pages = treePages + Int(stat.ms_overflow_pages)
    }
}
