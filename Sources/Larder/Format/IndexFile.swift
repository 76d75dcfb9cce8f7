import LMDB
import SystemPackage

/// A look at `data.mdb` before LMDB maps it.
///
/// LMDB trusts its meta pages: a file cut short makes it read beyond the end of the mapping, which is a signal, not an
/// error.
enum IndexFile {
    /// Throws `corruption` if the file exists, is not empty, and is not an LMDB file of its full length.
    static func validate(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.data)
        guard let file = try FileSystem.openIfPresent(Layout.data, in: directory, flags: O_RDONLY) else { return }
        do {
            try withExtendedLifetime(file) {
                let pages = try FilePages(descriptor: file.raw)
                if pages.length == 0 { return }
                // LMDB takes the newer of two meta pages, whatever is wrong with the other: both have to be good.
                let metas = try MetaPage.all(pages)
                guard metas.count == 2, let newest = metas.first else { throw damaged(path, "is not an LMDB file") }
                // After the meta pages: another process may be making the file longer just now. A commit that was
                // interrupted may leave the file longer than the newest meta page says, never shorter: pages are written
                // before it.
                let size = try FilePages(descriptor: file.raw).length
                let needed = (newest.lastPage + 1).multipliedReportingOverflow(by: UInt64(newest.pageSize))
                if needed.overflow || size < needed.partialValue {
                    throw damaged(path, "is cut short: \(size) bytes of \(needed.partialValue)")
                }
            }
        } catch let error as LarderError {
            throw error
        } catch {
            throw LarderError(.io, "cannot read \(path)", path: path, cause: error)
        }
    }

    static func damaged(_ path: FilePath, _ what: String) -> LarderError {
        LarderError(
            .corruption,
            "the index \(path) \(what): end every process that uses the store, then run 'cachectl verify --repair', "
                + "which keeps the entries that can still be read",
            path: path)
    }
}
