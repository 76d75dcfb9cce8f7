import SystemPackage

/// LMDB's lock file `lock.mdb`, before LMDB opens it.
enum IndexLockFile {
    /// Refuses to make LMDB's lock file a second time, under those who have the store open: they would not see each
    /// other.
    static func require(_ files: StoreFiles, _ presence: Presence) throws(LarderError) {
        if presence.isAlone { return }
        if try FileSystem.status(Layout.lock, in: files.index) != nil { return }
        // It may be on its way: the other one is opening a store that has none.
        for _ in 0..<50 {
            usleep(2000)
            if try FileSystem.status(Layout.lock, in: files.index) != nil { return }
        }
        throw LarderError(
            .locked,
            "\(files.index.path(of: Layout.lock)) was removed while the store is open: close the store everywhere, and keep "
                + "cleaners of temporary files away from it",
            path: files.index.path(of: Layout.lock))
    }

    /// True if LMDB's lock file can be used, or made where it is missing: by a rebuild that did not end, or a backup.
    static func canBeUsed(_ files: StoreFiles) throws(LarderError) -> Bool {
        let isThere = try FileSystem.status(Layout.lock, in: files.index) != nil
        return FileSystem.isWritable(path: isThere ? files.index.path(of: Layout.lock) : files.index.path)
    }

    /// Gives LMDB's lock file its blocks before it is mapped: LMDB makes it sparse, and a full disk would otherwise be
    /// a SIGBUS at the first reader of a fresh slot. Changes neither length nor contents. Must come before LMDB opens
    /// the file: closing any descriptor of it later would drop LMDB's fcntl(2) locks.
    static func allocate(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.lock)
        let file = try FileSystem.open(Layout.lock, in: directory, flags: O_RDWR | O_CREAT)
        // It may have them: a full disk can refuse even blocks that are there.
        if try FileSystem.status(file, path: path).allocated >= Int64(length) { return }
        FileSystem.writeInPlace(file)
        _ = try FileSystem.preallocate(raw: file.raw, offset: 0, length: Int64(length), path: path)
    }

    /// Whole pages for the table of 1,024 readers (64 bytes each) and its head.
    private static let length = 17 * 4096
}
