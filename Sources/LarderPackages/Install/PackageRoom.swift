import Larder
import LarderHTTP

/// The conditions of an installation, before anything is written.
struct PackageRoom {
    private let store: Store
    private let contents: PackageContents
    private let package: InstalledPackage
    private let previous: InstalledPackage?

    init(
        _ store: Store, _ contents: PackageContents, _ package: InstalledPackage, _ previous: InstalledPackage?
    ) {
        self.store = store
        self.contents = contents
        self.package = package
        self.previous = previous
    }

    /// Refuses an increment without the version that it adds to.
    func requireBase() throws {
        guard let base = contents.header?.base else { return }
        let path = contents.archive.path
        guard let previous, previous.state == .installed else {
            throw PackageError(
                .missingBase, "it is an increment of version '\(base.version)', but the package is not installed",
                archive: path)
        }
        if previous.listDigest != base.list {
            throw PackageError(
                .missingBase,
                "it is an increment of version '\(base.version)', but version '\(previous.version)' is installed, "
                    + "or a different package with that version",
                archive: path)
        }
    }

    /// Refuses a package that cannot fit; returns how many bytes one commit may take.
    func requireRoom() throws -> Int {
        let budget = try store.budget()
        let files = contents.archive
        var needed = files.totalBytes + Int64(files.fileCount) * InstalledPackage.rowBytes
        // Of an increment most is in the store.
        if contents.header?.base != nil, let previous { needed += previous.room }
        // What is stored may be displaced for it, but no more.
        let disk = try store.freeDiskBytes() + store.statistics().allocatedBytes.bytes
        if needed > disk {
            throw PackageError(
                .exceedsBudget, "the package needs \(needed) bytes with its rows, but the disk has room for \(disk)",
                archive: files.path)
        }
        if budget.bytes == .unlimited { return 4 << 20 }
        let taken = try PackageRecords(store).all().filter { $0.mode == .pin && $0.name != package.name }
            .reduce(0) { $0 + $1.room }
        if needed + taken > budget.usableBytes {
            let others = taken == 0 ? "" : ", and other pinned packages use \(taken) bytes"
            throw PackageError(
                .exceedsBudget,
                "the package needs \(needed) bytes with its rows\(others); the store's budget allows "
                    + "\(budget.usableBytes)",
                archive: files.path)
        }
        // One commit must fit beside what is pinned.
        return Int(clamping: min(4 << 20, max(64 << 10, budget.usableBytes / 16)))
    }

    /// A store without room means that the package does not fit.
    func translated(_ error: any Error) -> any Error {
        guard let error = error as? LarderError, [.noSpace, .tooLarge, .mapFull].contains(error.code) else {
            return error
        }
        return PackageError(
            .exceedsBudget, "the package does not fit in the store", archive: contents.archive.path, cause: error)
    }
}
