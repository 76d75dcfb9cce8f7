import CLarder
import Failpoints
import SystemPackage

/// Every system call the engine makes on files, one function each, so that one place can be watched or made to fail.
///
/// Functions throw `LarderError` with the path and the `Errno`. Names are relative to a directory descriptor where one
/// is given; symbolic links inside the store are never followed.
enum FileSystem {
    /// What `fstat(2)` tells that the engine needs.
    struct Status {
        let size: Int64
        /// Bytes allocated on disk: `st_blocks` x 512.
        let allocated: Int64
        /// Bytes in which space is taken, as far as the file system says: `st_blksize`, 4,096 at most.
        let blockBytes: Int64
        let device: UInt64
        let inode: UInt64
        let isRegular: Bool
        let isDirectory: Bool
        let isLink: Bool
        let owner: UInt32
        let linkCount: UInt64
        let modified: Timestamp
        /// Last change of bytes and of anything else, to the nanosecond.
        let modifiedNanoseconds: Int64
        let changedNanoseconds: Int64
        /// Permission bits.
        let mode: UInt32

        init(_ status: stat) {
            size = Int64(status.st_size)
            allocated = Int64(status.st_blocks) * 512
            blockBytes = min(max(512, Int64(status.st_blksize)), 4096)
            device = UInt64(truncatingIfNeeded: status.st_dev)
            inode = UInt64(status.st_ino)
            isRegular = status.st_mode & S_IFMT == S_IFREG
            isDirectory = status.st_mode & S_IFMT == S_IFDIR
            isLink = status.st_mode & S_IFMT == S_IFLNK
            owner = status.st_uid
            linkCount = UInt64(status.st_nlink)
            #if canImport(Darwin)
                let time = status.st_mtimespec
                let change = status.st_ctimespec
            #else
                let time = status.st_mtim
                let change = status.st_ctim
            #endif
            modifiedNanoseconds = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
            changedNanoseconds = Int64(change.tv_sec) &* 1_000_000_000 &+ Int64(change.tv_nsec)
            mode = UInt32(status.st_mode) & 0o7777
            modified = Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
        }
    }

    // MARK: Opening

    /// openat(2), close-on-exec, without following a symbolic link in the last component.
    static func open(_ name: String, in directory: Directory, flags: Int32, mode: mode_t = 0o600) throws(LarderError)
        -> OwnedDescriptor
    {
        guard let descriptor = try openIfPresent(name, in: directory, flags: flags, mode: mode) else {
            throw .system("open", ENOENT, path: directory.path(of: name))
        }
        return descriptor
    }

    /// As `open`, nil if there is no such file.
    static func openIfPresent(
        _ name: String, in directory: Directory, flags: Int32, mode: mode_t = 0o600
    ) throws(LarderError) -> OwnedDescriptor? {
        let raw = perform("open", at: directory.place) {
            // Does not wait for another process at the other end, if it is a FIFO.
            DescriptorReserve.checked(
                openat(directory.descriptor.raw, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode))
        }
        if raw >= 0 {
            let descriptor = OwnedDescriptor(raw)
            // The umask may have taken bits of the owner's: a file that its maker cannot open again.
            if flags & O_CREAT != 0 { _ = perform("fchmod", on: raw) { fchmod(raw, mode) } }
            return descriptor
        }
        let number = try linked(name, in: directory, errno)
        // A file that should be a directory is not absent.
        let isAbsent = flags & O_DIRECTORY == 0 ? isAbsence(number) : number == ENOENT
        if isAbsent, flags & O_CREAT == 0 { return nil }
        throw .system("open", number, path: directory.path(of: name))
    }

    /// ELOOP for a symbolic link, for which O_DIRECTORY with O_NOFOLLOW gives ENOTDIR (open(2)).
    private static func linked(_ name: String, in directory: Directory, _ number: Int32) throws(LarderError) -> Int32 {
        guard number == ENOTDIR, try status(name, in: directory)?.isLink == true else { return number }
        return ELOOP
    }

    /// open(2) of a path of the caller's; symbolic links are followed.
    static func open(path: FilePath, flags: Int32, mode: mode_t = 0o600) throws(LarderError) -> OwnedDescriptor {
        let raw = perform("open", at: path.string) {
            path.withPlatformString { DescriptorReserve.checked(openat(AT_FDCWD, $0, flags | O_CLOEXEC, mode)) }
        }
        guard raw >= 0 else { throw .system("open", errno, path: path) }
        return OwnedDescriptor(raw)
    }

    // MARK: Bytes

    /// pread(2) until `buffer` is full or the file ends; returns the bytes read.
    static func read(
        _ descriptor: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64,
        path: @autoclosure () -> FilePath?
    ) throws(LarderError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = transfer("pread", on: descriptor, buffer.count - done) {
                pread(descriptor.raw, buffer.baseAddress! + done, $0, off_t(offset) + off_t(done))
            }
            if count < 0 { throw .system("pread", errno, path: path()) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// The first `limit` bytes of a file; nil if there is none.
    static func contents(_ name: String, in directory: Directory, limit: Int) throws(LarderError) -> [UInt8]? {
        guard let file = try openIfPresent(name, in: directory, flags: O_RDONLY) else { return nil }
        var bytes = [UInt8](repeating: 0, count: limit)
        let result = bytes.withUnsafeMutableBytes { raw in
            Result { () throws(LarderError) in try read(file, into: raw, at: 0, path: directory.path(of: name)) }
        }
        return Array(bytes[..<(try result.get())])
    }

    /// pwrite(2) until everything is written.
    static func write(
        _ descriptor: OwnedDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64,
        path: @autoclosure () -> FilePath?
    ) throws(LarderError) {
        var done = 0
        while done < bytes.count {
            let count = transfer("pwrite", on: descriptor, bytes.count - done) {
                pwrite(descriptor.raw, bytes.baseAddress! + done, $0, off_t(offset) + off_t(done))
            }
            if count < 0 { throw .system("pwrite", errno, path: path()) }
            if count == 0 { throw .system("pwrite", ENOSPC, path: path()) }
            done += count
        }
    }

    /// Writes an array; errors as above.
    static func write(
        _ descriptor: OwnedDescriptor, _ bytes: [UInt8], at offset: Int64, path: @autoclosure () -> FilePath?
    )
        throws(LarderError)
    {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(LarderError) in try write(descriptor, raw, at: offset, path: path()) }
        }
        try result.get()
    }

    /// ftruncate(2).
    static func truncate(_ descriptor: OwnedDescriptor, to length: Int64, path: @autoclosure () -> FilePath?)
        throws(LarderError)
    {
        try truncate(raw: descriptor.raw, to: length, path: path())
    }

    static func truncate(raw descriptor: Int32, to length: Int64, path: @autoclosure () -> FilePath?)
        throws(LarderError)
    {
        guard perform("ftruncate", on: descriptor, { ftruncate(descriptor, off_t(length)) }) == 0 else {
            throw .system("ftruncate", errno, path: path())
        }
    }

    // MARK: Names

    /// True for the errors of a name that leads nowhere: nothing is there, or what should be a directory on the way is
    /// not one.
    private static func isAbsence(_ number: Int32) -> Bool { number == ENOENT || number == ENOTDIR }

    /// renameat(2). False if the source does not exist.
    @discardableResult
    static func rename(_ name: String, in source: Directory, to newName: String, in target: Directory)
        throws(LarderError) -> Bool
    {
        let result = perform("rename", at: source.place) {
            renameat(source.descriptor.raw, name, target.descriptor.raw, newName)
        }
        if result == 0 { return true }
        let number = errno
        if isAbsence(number) { return false }
        throw .system("rename", number, path: source.path(of: name))
    }

    /// unlinkat(2). False if there is no such file.
    @discardableResult
    static func unlink(_ name: String, in directory: Directory) throws(LarderError) -> Bool {
        let result = perform("unlink", at: directory.place) { unlinkat(directory.descriptor.raw, name, 0) }
        if result == 0 { return true }
        let number = errno
        if isAbsence(number) { return false }
        throw .system("unlink", number, path: directory.path(of: name))
    }

    /// As `unlink`, but also false for a directory: one that is not ours and has the name of a file of ours.
    @discardableResult
    static func unlinkFile(_ name: String, in directory: Directory) throws(LarderError) -> Bool {
        do {
            return try unlink(name, in: directory)
        } catch {
            if try status(name, in: directory)?.isDirectory == true { return false }
            throw error
        }
    }

    /// mkdirat(2) with mode 0700; an existing directory is fine.
    static func makeDirectory(_ name: String, in directory: Directory) throws(LarderError) {
        let result = perform("mkdir", at: directory.place) { mkdirat(directory.descriptor.raw, name, 0o700) }
        if result == 0 {
            // Whatever the umask took.
            _ = perform("fchmodat", at: directory.place) { fchmodat(directory.descriptor.raw, name, 0o700, 0) }
            return
        }
        let number = errno
        if number != EEXIST { throw .system("mkdir", number, path: directory.path(of: name)) }
    }

    /// mkdir(2) of a path of the caller's, mode 0700; an existing one is fine.
    static func makeDirectory(path: FilePath) throws(LarderError) {
        if perform("mkdir", at: path.string, { path.withPlatformString { mkdir($0, 0o700) } }) == 0 {
            // Whatever the umask took.
            _ = perform("chmod", at: path.string) { path.withPlatformString { chmod($0, 0o700) } }
            return
        }
        let number = errno
        if number != EEXIST { throw .system("mkdir", number, path: path) }
    }

    /// unlinkat(2) of an empty directory; one that is not there is fine.
    static func removeDirectory(_ name: String, in directory: Directory) throws(LarderError) {
        let result = perform("rmdir", at: directory.place) {
            unlinkat(directory.descriptor.raw, name, AT_REMOVEDIR)
        }
        if result == 0 { return }
        let number = errno
        if number != ENOENT { throw .system("rmdir", number, path: directory.path(of: name)) }
    }

    /// rmdir(2) of a path of the caller's. Returns 0 or the `errno`.
    @discardableResult
    static func removeDirectory(path: FilePath) -> Int32 {
        let result = perform("rmdir", at: path.string) { path.withPlatformString { rmdir($0) } }
        return result == 0 ? 0 : errno
    }

    // MARK: Facts

    /// fstat(2).
    static func status(_ descriptor: OwnedDescriptor, path: @autoclosure () -> FilePath?) throws(LarderError) -> Status
    {
        try status(raw: descriptor.raw, path: path())
    }

    /// fstat(2) of a descriptor that someone else owns.
    static func status(raw descriptor: Int32, path: @autoclosure () -> FilePath?) throws(LarderError) -> Status {
        var result = stat()
        guard perform("fstat", on: descriptor, { fstat(descriptor, &result) }) == 0 else {
            throw .system("fstat", errno, path: path())
        }
        return Status(result)
    }

    /// fstatat(2) without following links; nil if there is no such file.
    static func status(_ name: String, in directory: Directory) throws(LarderError) -> Status? {
        var result = stat()
        let code = perform("fstatat", at: directory.place) {
            fstatat(directory.descriptor.raw, name, &result, AT_SYMLINK_NOFOLLOW)
        }
        if code == 0 { return Status(result) }
        let number = errno
        if isAbsence(number) { return nil }
        throw .system("fstatat", number, path: directory.path(of: name))
    }

    /// stat(2); nil if there is no such file.
    static func status(path: FilePath) throws(LarderError) -> Status? {
        var result = stat()
        let code = perform("stat", at: path.string) { path.withPlatformString { fstatat(AT_FDCWD, $0, &result, 0) } }
        if code == 0 { return Status(result) }
        let number = errno
        if isAbsence(number) { return nil }
        throw .system("stat", number, path: path)
    }

    /// What a file system has, for an unprivileged process.
    struct Space {
        /// Bytes that may still be allocated.
        let free: Int64
        /// Bytes of the whole file system.
        let total: Int64
        /// Files that may still be made; some file systems count none.
        let freeInodes: Int64
    }

    /// fstatvfs(3).
    static func space(_ directory: Directory) throws(LarderError) -> Space {
        var result = statvfs()
        guard perform("fstatvfs", at: directory.place, { fstatvfs(directory.descriptor.raw, &result) }) == 0 else {
            throw .system("fstatvfs", errno, path: directory.path)
        }
        let block = UInt64(result.f_frsize)
        return Space(
            free: Int64(clamping: UInt64(result.f_bavail) * block),
            total: Int64(clamping: UInt64(result.f_blocks) * block),
            freeInodes: result.f_files == 0 ? .max : Int64(clamping: UInt64(result.f_favail)))
    }

    /// Bytes that an unprivileged process may still allocate on the file system.
    static func freeBytes(_ directory: Directory) throws(LarderError) -> Int64 { try space(directory).free }

    /// futimens(2): sets the time of the last change of bytes, of a descriptor that someone else owns.
    static func setModified(raw descriptor: Int32, nanoseconds: Int64, path: @autoclosure () -> FilePath?)
        throws(LarderError)
    {
        let time = timespec(
            tv_sec: time_t(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        let times = [time, time]
        if futimens(descriptor, times) != 0 { throw .system("futimens", errno, path: path()) }
    }

    /// Has bytes of a file read into memory soon. A hint, of which the system takes some MiB at most.
    static func readAhead(raw descriptor: Int32, offset: Int64, length: Int64) {
        clarder_read_ahead(descriptor, offset, length)
    }

    /// Bytes of memory that the machine has.
    static var physicalMemory: Int64 {
        Int64(clamping: sysconf(Int32(_SC_PHYS_PAGES))) * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    // MARK: Space

    /// True where `Status.allocated` of a file is final once the file has been synced.
    static func hasFinalBlocks(_ directory: Directory) -> Bool { clarder_blocks_are_final(directory.descriptor.raw) }

    /// True where a file that grows is given blocks beyond its end, up to its length again, which count as allocated.
    static func speculates(_ directory: Directory) -> Bool { clarder_speculates(directory.descriptor.raw) }

    /// Makes the file system overwrite an empty file in place, so that the file never needs other blocks. For files
    /// that are mapped: a copy-on-write file system needs a new block for a store to the mapping, and on a full disk
    /// that is SIGBUS. Without effect on other file systems, and on files that are not empty.
    static func writeInPlace(_ descriptor: OwnedDescriptor) { _ = clarder_write_in_place(descriptor.raw) }

    /// Allocates blocks ahead of writing; false where the file system cannot.
    static func preallocate(raw descriptor: Int32, offset: Int64, length: Int64, path: @autoclosure () -> FilePath?)
        throws(LarderError) -> Bool
    {
        let result = perform("fallocate", on: descriptor) { clarder_preallocate(descriptor, offset, length) }
        if result == 0 { return true }
        let number = errno
        if number == EOPNOTSUPP || number == ENOTSUP || number == ENOSYS { return false }
        throw .system("fallocate", number, path: path())
    }

    /// Gives blocks back to the file system; false where it cannot.
    static func punchHole(rawDescriptor: Int32, offset: Int64, length: Int64, path: @autoclosure () -> FilePath?)
        throws(LarderError) -> Bool
    {
        let result = perform("punch", on: rawDescriptor) { clarder_punch_hole(rawDescriptor, offset, length) }
        if result == 0 { return true }
        let number = errno
        if number == EOPNOTSUPP || number == ENOTSUP || number == ENOSYS { return false }
        throw .system("fallocate", number, path: path())
    }

    /// False if there is nothing but a hole from `offset` on, for `length` bytes. lseek(2), SEEK_DATA; moves the
    /// descriptor's position. True where the file system cannot tell.
    static func hasData(rawDescriptor: Int32, offset: Int64, length: Int64) -> Bool {
        clarder_has_data(rawDescriptor, offset, length)
    }

    // MARK: Paths

    /// The path without links and `..`; as it is where it leads nowhere. realpath(3).
    static func resolved(_ path: FilePath) -> FilePath {
        guard let real = path.withPlatformString({ realpath($0, nil) }) else { return path }
        defer { free(real) }
        return FilePath(platformString: real)
    }

    // MARK: Permissions

    /// fchmod(2) to 0600 where a file of ours has another mode; of a descriptor that someone else owns.
    static func makePrivate(raw descriptor: Int32, path: @autoclosure () -> FilePath?) throws(LarderError) {
        let status = try status(raw: descriptor, path: path())
        if status.mode != 0o600, status.owner == geteuid() { _ = fchmod(descriptor, 0o600) }
    }

    // MARK: Locks

    /// The kinds of flock(2).
    enum Lock {
        case exclusive, shared

        fileprivate var operation: Int32 { self == .exclusive ? LOCK_EX : LOCK_SH }
    }

    /// flock(2); false if another open file has a lock that does not go with it and `wait` is false.
    static func lock(
        _ descriptor: OwnedDescriptor, _ lock: Lock = .exclusive, wait: Bool, path: @autoclosure () -> FilePath?
    ) throws(LarderError) -> Bool {
        let operation = lock.operation | (wait ? 0 : LOCK_NB)
        descriptor.willLock()
        let result = perform("flock", on: descriptor.raw) { flock(descriptor.raw, operation) }
        if result == 0 { return true }
        let number = errno
        if number == EWOULDBLOCK { return false }
        throw .system("flock", number, path: path())
    }

    /// flock(2) with LOCK_UN.
    static func unlock(_ descriptor: OwnedDescriptor) { _ = flock(descriptor.raw, LOCK_UN) }
}
