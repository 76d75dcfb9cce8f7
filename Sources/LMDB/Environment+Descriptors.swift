import CLMDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension Environment {
    /// Sets FD_CLOEXEC on the descriptors of `data.mdb`: older releases (0.9.24) open only the lock file with
    /// O_CLOEXEC. A program that this process starts would keep the file, and the disk space of a store that was
    /// removed, for as long as it runs.
    ///
    /// A child made by another thread between LMDB's open(2) and this call still gets them; LMDB has no hook to close
    /// that gap.
    func keepDescriptorsFromChildren() {
        for descriptor in descriptors() {
            let flags = fcntl(descriptor, F_GETFD)
            if flags >= 0, flags & FD_CLOEXEC == 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
        }
    }

    /// The descriptor of `data.mdb` and that for its meta pages, for which LMDB has no call.
    ///
    /// `struct MDB_env` begins with three of them (`me_fd`, `me_lfd`, `me_mfd`) in every release since 0.9.9. The first
    /// is known, and the third counts only if it is another open of the same file.
    private func descriptors() -> [Int32] {
        // SAFETY: MDB_env is larger than three words in every release.
        let words = UnsafeRawPointer(pointer)
        let first = words.load(as: Int32.self)
        let third = words.load(fromByteOffset: 8, as: Int32.self)
        var (data, other) = (stat(), stat())
        guard first == dataDescriptor, third > 2, third != first, fstat(first, &data) == 0, fstat(third, &other) == 0,
            data.st_dev == other.st_dev, data.st_ino == other.st_ino
        else { return [dataDescriptor] }
        return [first, third]
    }
}
