import LMDB
import SystemPackage

/// A look at `data.mdb` before LMDB maps it.
///
/// Opening it is harmless once its meta pages are good; whether a transaction may look further is for `IndexTrust` to
/// say.
enum IndexFile {
    /// Throws `corruption` if the file exists, is not empty, and does not begin as an LMDB file does; `formatMismatch`
    /// if it is one of another version of LMDB than this program runs with.
    static func validate(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.data)
        guard let file = try FileSystem.openIfPresent(Layout.data, in: directory, flags: O_RDONLY) else { return }
        do {
            try withExtendedLifetime(file) {
                let pages = try FilePages(descriptor: file.raw)
                if pages.length == 0 { return }
                // LMDB takes the newer of two meta pages, whatever is wrong with the other: both have to be good.
                let metas = try MetaPage.all(pages)
                guard metas.count == 2 else { throw damaged(path, "is not an LMDB file") }
                // Only free pages may be missing at the end, and never more than this. LMDB would map them all.
                let longest = pages.length + 1 << 36
                if let meta = metas.first(where: { ($0.lastPage + 1) * UInt64($0.pageSize) > longest }) {
                    throw damaged(path, "has \(pages.length) bytes, and its head says \(meta.lastPage + 1) pages")
                }
                if let current = PageFormat.current, metas[0].format != current {
                    throw otherVersion(path, metas[0].format)
                }
            }
        } catch let error as LarderError {
            throw error
        } catch {
            throw LarderError(.io, "cannot read \(path)", path: path, cause: error)
        }
    }

    private static func otherVersion(_ path: FilePath, _ format: PageFormat) -> LarderError {
        LarderError(
            .formatMismatch,
            "the index \(path) was written with \(format), and LMDB \(LMDBLibrary.current), which this program runs with, "
                + "cannot read it: end every process that uses the store, then run 'cachectl verify --repair', which "
                + "writes it again for this version and keeps all entries; or use the program with \(format)",
            path: path)
    }

    static func damaged(_ path: FilePath, _ what: String) -> LarderError {
        LarderError(
            .corruption, "the index \(path) \(what)", remedy: .rebuildIndex, path: path)
    }
}
