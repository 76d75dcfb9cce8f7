import LMDB

extension LarderError {
    /// Why the index could not be opened, or made.
    init(opening error: LMDBError, _ files: StoreFiles) {
        let data = files.index.path(of: Layout.data)
        if error.isUnknownLibrary {
            self.init(
                .unsupported,
                "this program runs with LMDB \(LMDBLibrary.current), whose files Larder does not know: install LMDB 0.9 "
                    + "(0.9.17 or later) or 1.x, not a development version",
                path: data, cause: error)
            return
        }
        if error.isDamage {
            self.init(
                .corruption,
                "\(data) is not a readable index", remedy: .rebuildIndex,
                path: data, cause: error)
            return
        }
        if error.isNoSpace {
            self.init(
                .noSpace, "no space left to open the index \(data): free some disk space", path: data, cause: error)
            return
        }
        // LMDB locks a byte of `lock.mdb` for the id of each process that reads (mdb_reader_pid).
        if error.function == "mdb_txn_begin", error.code == EAGAIN || error.code == EACCES {
            self.init(
                .locked,
                "\(data) is open in another container, by a process with the same process id (\(getpid())): let the containers "
                    + "share a PID namespace, or give each a store of its own",
                path: data, cause: error)
            return
        }
        if error.code == EACCES || error.code == EPERM {
            self.init(
                .io, "no permission to open the index \(data): the store must belong to the user who opens it",
                path: data, cause: error)
            return
        }
        self.init(.io, "cannot open the index \(data)", path: data, cause: error)
    }
}
