import SystemPackage

/// A look at `data.mdb` before LMDB maps it.
///
/// LMDB trusts its meta pages: a file cut short makes it read beyond the end of the mapping, which is a signal, not an
/// error. The layout of the meta pages is part of LMDB's file format, data version 1, the only one of all 0.9 releases.
enum IndexFile {
    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let dataVersion: UInt32 = 1
    /// Bytes of a meta page that matter: page header 16, MDB_meta 136.
    private static let metaLength = 152

    /// Throws `corruption` if the file exists, is not empty, and is not an LMDB file of its full length.
    static func validate(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.data)
        guard let file = try FileSystem.openIfPresent(Layout.data, in: directory, flags: O_RDONLY) else { return }
        if try FileSystem.status(file, path: path).size == 0 { return }
        guard let first = try meta(file, at: 0, path), let second = try meta(file, at: first.pageSize, path) else {
            throw damaged(path, "is not an LMDB file")
        }
        let newest = first.transaction >= second.transaction ? first : second
        // After the meta pages: another process may be making the file longer just now.
        let size = try FileSystem.status(file, path: path).size
        let (needed, overflow) = (newest.lastPage &+ 1).multipliedReportingOverflow(by: newest.pageSize)
        // A commit that was interrupted may leave the file shorter than an allocation it never recorded, never shorter
        // than the newest meta page says: pages are written before it.
        if overflow || size < needed { throw damaged(path, "is cut short: \(size) bytes of \(needed)") }
    }

    private struct Meta {
        let pageSize: Int64
        let lastPage: Int64
        let transaction: UInt64
    }

    private static func meta(_ file: OwnedDescriptor, at offset: Int64, _ path: FilePath) throws(LarderError) -> Meta? {
        var bytes = [UInt8](repeating: 0, count: metaLength)
        var count = 0
        do {
            count = try bytes.withUnsafeMutableBytes { try FileSystem.read(file, into: $0, at: offset, path: path) }
        } catch let error as LarderError {
            throw error
        } catch {
            throw LarderError(.io, "cannot read \(path)", path: path, cause: error)
        }
        guard count == metaLength else { return nil }
        return bytes.withUnsafeBytes { raw in
            let pageSize = Int64(raw.loadUnaligned(fromByteOffset: 40, as: UInt32.self))
            let lastPage = raw.loadUnaligned(fromByteOffset: 136, as: UInt64.self)
            guard raw.loadUnaligned(fromByteOffset: 16, as: UInt32.self) == magic,
                raw.loadUnaligned(fromByteOffset: 20, as: UInt32.self) == dataVersion,
                pageSize >= 512, pageSize <= 65536, pageSize & (pageSize - 1) == 0, lastPage < 1 << 47
            else { return nil }
            return Meta(
                pageSize: pageSize, lastPage: Int64(lastPage),
                transaction: raw.loadUnaligned(fromByteOffset: 144, as: UInt64.self))
        }
    }

    private static func damaged(_ path: FilePath, _ what: String) -> LarderError {
        LarderError(
            .corruption,
            "the index \(path) \(what): run 'cachectl verify --repair' to rebuild it; bodies that no index names are lost",
            path: path)
    }
}
