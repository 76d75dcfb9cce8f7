/// One of the two meta pages (`MDB_meta`): where the trees of a transaction's state begin.
///
/// A transaction writes the page of its number's parity. The layout is that of data version 1, the only one of all 0.9
/// releases.
public struct MetaPage: Sendable, Hashable {
    /// Bytes per page.
    public let pageSize: Int
    /// LMDB's list of free pages.
    let freeTree: TreeRecord
    /// The tree that names the others.
    let mainTree: TreeRecord
    /// The last page in use.
    public let lastPage: UInt64
    /// Number of the transaction.
    public let transaction: UInt64
    /// 0 or 1.
    let page: UInt64

    /// Page header 16 bytes, `MDB_meta` 136.
    static let length = 152
    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let dataVersion: UInt32 = 1
    private static let metaFlag: UInt16 = 0x08
    /// LMDB writes pages of the system's size up to this (`MAX_PAGESIZE`).
    static let pageSizes = 512...32768

    /// Decodes the first bytes of page `page`; nil if it is not a meta page of that place.
    init?(_ raw: UnsafeRawBufferPointer, page: UInt64) {
        guard raw.count >= Self.length, raw.native(10, as: UInt16.self) == Self.metaFlag,
            raw.native(16, as: UInt32.self) == Self.magic, raw.native(20, as: UInt32.self) == Self.dataVersion,
            let size = Int(exactly: raw.native(40, as: UInt32.self)), Self.pageSizes.contains(size),
            size & (size - 1) == 0
        else { return nil }
        pageSize = size
        freeTree = TreeRecord(UnsafeRawBufferPointer(rebasing: raw[40..<88]))
        mainTree = TreeRecord(UnsafeRawBufferPointer(rebasing: raw[88..<136]))
        lastPage = raw.native(136)
        transaction = raw.native(144)
        self.page = page
        // Pages are counted in 64 bits and addressed in bytes of as many.
        guard lastPage < 1 << 47, transaction == 0 || transaction & 1 == page else { return nil }
    }

    /// Both meta pages of a file, the newest first; only those that can be read.
    public static func all(_ source: some PageSource) throws(LMDBError) -> [MetaPage] {
        var found: [MetaPage] = []
        if let first = try read(source, at: 0, page: 0) { found.append(first) }
        // The second lies a page further on. Its size is that of the first, or, if that is lost, any.
        var sizes = found.map(\.pageSize)
        if sizes.isEmpty { sizes = [4096, 16384, 512, 1024, 2048, 8192, 32768] }
        for size in sizes {
            if let second = try read(source, at: UInt64(size), page: 1), second.pageSize == size {
                found.append(second)
                break
            }
        }
        // Of two equal ones, those of a file that holds nothing yet, LMDB takes the first.
        return found.sorted { $0.transaction > $1.transaction }
    }

    private static func read(_ source: some PageSource, at offset: UInt64, page: UInt64) throws(LMDBError) -> MetaPage?
    {
        var bytes = (0..<19).map { _ in UInt64(0) }
        var count = 0
        do {
            count = try bytes.withUnsafeMutableBytes { try source.read($0, at: offset) }
        } catch {
            throw error as? LMDBError ?? LMDBError(code: 5, function: "pread")
        }
        guard count == length else { return nil }
        return bytes.withUnsafeBytes { MetaPage($0, page: page) }
    }
}

/// The root of one tree (`MDB_db`), 48 bytes.
struct TreeRecord: Sendable, Hashable {
    let flags: UInt16
    let depth: UInt16
    let branchPages: UInt64
    let leafPages: UInt64
    let overflowPages: UInt64
    let entries: UInt64
    let root: UInt64

    static let length = 48
    /// Root of an empty tree (`P_INVALID`).
    static let noPage = UInt64.max
    static let integerKeyFlag: UInt16 = 0x08

    init(_ raw: UnsafeRawBufferPointer) {
        flags = raw.native(4)
        depth = raw.native(6)
        branchPages = raw.native(8)
        leafPages = raw.native(16)
        overflowPages = raw.native(24)
        entries = raw.native(32)
        root = raw.native(40)
    }
}

extension UnsafeRawBufferPointer {
    /// A field in the machine's byte order. The caller has checked the length.
    @inline(__always)
    func native<I: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: I.Type = I.self) -> I {
        loadUnaligned(fromByteOffset: offset, as: I.self)
    }
}
