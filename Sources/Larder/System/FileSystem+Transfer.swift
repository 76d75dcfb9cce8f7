import CLarder
import SystemPackage

extension FileSystem {
    /// lstat(2): true if `path` names a regular file itself; nil if there is nothing, or if that is unknown.
    static func isRegular(unfollowed path: FilePath) -> Bool? {
        var result = stat()
        let code = perform("lstat", at: path.string) { path.withPlatformString { lstat($0, &result) } }
        return code == 0 ? result.st_mode & S_IFMT == S_IFREG : nil
    }

    /// rename(2) of a path of the caller's to another. Returns 0 or the `errno`.
    static func rename(path: FilePath, to name: FilePath) -> Int32 {
        let result = perform("rename", at: path.string) {
            path.withPlatformString { path in name.withPlatformString { renameat(AT_FDCWD, path, AT_FDCWD, $0) } }
        }
        return result == 0 ? 0 : errno
    }

    /// linkat(2) of a path of the caller's. Returns 0 or the `errno`.
    static func link(path: FilePath, as name: String, in target: Directory) -> Int32 {
        let result = perform("link", at: path.string) {
            path.withPlatformString { linkat(AT_FDCWD, $0, target.descriptor.raw, name, 0) }
        }
        return result == 0 ? 0 : errno
    }

    /// link(2). Returns 0 or the `errno`.
    static func link(path: FilePath, as name: FilePath) -> Int32 {
        let result = perform("link", at: path.string) {
            path.withPlatformString { path in name.withPlatformString { linkat(AT_FDCWD, path, AT_FDCWD, $0, 0) } }
        }
        return result == 0 ? 0 : errno
    }

    /// unlink(2) of a path of the caller's. Returns 0 or the `errno`.
    @discardableResult
    static func unlink(path: FilePath) -> Int32 {
        let result = perform("unlink", at: path.string) { path.withPlatformString { unlinkat(AT_FDCWD, $0, 0) } }
        return result == 0 ? 0 : errno
    }

    /// FICLONE (ioctl_ficlone(2)); false where it cannot be done.
    static func clone(_ source: OwnedDescriptor, to target: OwnedDescriptor) -> Bool {
        perform("clone", on: target.raw) { clarder_clone(source.raw, target.raw) } == 0
    }

    /// copy_file_range(2) at the same offset of both files; returns the bytes copied, 0 or less where it cannot be
    /// done.
    static func copyRange(
        _ source: OwnedDescriptor, to target: OwnedDescriptor, at offset: Int64, length: Int64
    ) -> Int64 {
        Int64(
            transfer("copy_file_range", on: target, Int(length)) {
                Int(clarder_copy_range(source.raw, target.raw, offset, Int64($0)))
            })
    }

    /// mmap(2) of the first `length` bytes of a file, shared and writable.
    static func map(_ descriptor: OwnedDescriptor, length: Int, path: @autoclosure () -> FilePath?) throws(LarderError)
        -> UnsafeMutableRawPointer
    {
        var address: UnsafeMutableRawPointer?
        let result = perform("mmap", on: descriptor.raw) { () -> Int32 in
            address = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.raw, 0)
            return address == MAP_FAILED ? -1 : 0
        }
        guard result == 0, let address else { throw .system("mmap", errno, path: path()) }
        return address
    }

    /// access(2): true if the caller may write to the file.
    static func isWritable(path: FilePath) -> Bool {
        perform("access", at: path.string) { path.withPlatformString { access($0, W_OK) } } == 0
    }
}
