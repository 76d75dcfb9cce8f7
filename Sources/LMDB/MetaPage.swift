/// One of the two meta pages (`MDB_meta`), with the roots of the trees of a transaction's state.
///
/// A transaction writes the page of its number's parity.
public struct MetaPage: Sendable, Hashable {
    /// The layout of the file's pages.
    public let format: PageFormat
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
    public let page: UInt64

    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let metaFlag: UInt16 = 0x08

    /// Decodes the first bytes of page `page`; nil if it is not a meta page of that place, in neither format.
    init?(_ raw: UnsafeRawBufferPointer, page: UInt64) {
        for format in PageFormat.allCases {
            if let found = MetaPage(raw, page: page, format: format) {
                self = found
                return
            }
        }
        return nil
    }

    private init?(_ raw: UnsafeRawBufferPointer, page: UInt64, format: PageFormat) {
        guard raw.count >= format.metaLength, PageView(raw: raw, format: format).flags == Self.metaFlag else {
            return nil
        }
        let meta = UnsafeRawBufferPointer(rebasing: raw[format.headerLength..<format.metaLength])
        guard meta.native(0, as: UInt32.self) == Self.magic, meta.native(4, as: UInt32.self) == format.rawValue,
            let size = Int(exactly: meta.native(24, as: UInt32.self)), format.pageSizes.contains(size),
            size & (size - 1) == 0
        else { return nil }
        self.format = format
        pageSize = size
        freeTree = TreeRecord(UnsafeRawBufferPointer(rebasing: meta[24..<72]))
        mainTree = TreeRecord(UnsafeRawBufferPointer(rebasing: meta[72..<120]))
        lastPage = meta.native(120)
        transaction = meta.native(128)
        self.page = page
        // Pages are counted in 64 bits and addressed in bytes of as many.
        guard lastPage < 1 << 47, transaction == 0 || transaction & 1 == page else { return nil }
    }

    /// Both meta pages of a file, the newest first; only readable ones are included.
    public static func all(_ source: some PageSource) throws(LMDBError) -> [MetaPage] {
        var found: [MetaPage] = []
        if let first = try read(source, at: 0, page: 0) { found.append(first) }
        // The second lies a page further on. Its size is that of the first, or, if that is lost, any.
        var sizes = found.map(\.pageSize)
        if sizes.isEmpty { sizes = [4096, 16384, 65536, 512, 1024, 2048, 8192, 32768] }
        for size in sizes {
            if let second = try read(source, at: UInt64(size), page: 1), second.pageSize == size,
                found.first?.format ?? second.format == second.format
            {
                found.append(second)
                break
            }
        }
        // Of two equal ones, those of a file that holds nothing yet, LMDB takes the first.
        return found.sorted { $0.transaction > $1.transaction }
    }

    private static func read(_ source: some PageSource, at offset: UInt64, page: UInt64) throws(LMDBError) -> MetaPage?
    {
        var bytes = (0..<20).map { _ in UInt64(0) }
        var count = 0
        do {
            count = try bytes.withUnsafeMutableBytes { try source.read($0, at: offset) }
        } catch {
            throw error as? LMDBError ?? LMDBError(code: 5, function: "pread")
        }
        return bytes.withUnsafeBytes { MetaPage(UnsafeRawBufferPointer(rebasing: $0[..<count]), page: page) }
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
