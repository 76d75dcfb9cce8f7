import CLarder
import SystemPackage

/// Every call that waits for a disk to hold data, except LMDB's own (see `LMDB.Environment.sync`).
enum Sync {
    /// A body file before its entry is committed with `Durability.durable`: fdatasync(2). On Darwin F_FULLFSYNC, as
    /// fsync there "will flush all data to the drive", which may keep it in its cache (man 2 fsync).
    static func data(_ descriptor: OwnedDescriptor, path: @autoclosure () -> FilePath?) throws(LarderError) {
        let result = FileSystem.perform("fdatasync", on: descriptor.raw) { clarder_sync_data(descriptor.raw) }
        if result == 0 { return }
        try plain(descriptor, after: ("fdatasync", errno), path: path())
    }

    /// A directory after a name in it has to survive power loss: fsync(2), on Darwin F_FULLFSYNC as above.
    static func names(_ directory: Directory) throws(LarderError) {
        let descriptor = directory.descriptor
        #if canImport(Darwin)
            let result = FileSystem.perform("fsync", at: directory.place) { clarder_sync_data(descriptor.raw) }
        #else
            let result = FileSystem.perform("fsync", at: directory.place) { fsync(descriptor.raw) }
        #endif
        if result == 0 { return }
        #if canImport(Darwin)
            try plain(descriptor, after: ("fsync", errno), path: directory.path)
        #else
            throw .system("fsync", errno, path: directory.path)
        #endif
    }

    /// fsync(2) where the stronger call is refused, as F_FULLFSYNC is by network volumes: this is then the strongest
    /// guarantee available there.
    private static func plain(
        _ descriptor: OwnedDescriptor, after first: (call: String, number: Int32), path: @autoclosure () -> FilePath?
    ) throws(LarderError) {
        let refusals = [ENOTSUP, EOPNOTSUPP, EINVAL, ENOTTY, ENOSYS]
        guard refusals.contains(first.number) else { throw .system(first.call, first.number, path: path()) }
        if FileSystem.perform("fsync", on: descriptor.raw, { fsync(descriptor.raw) }) != 0 {
            throw .system("fsync", errno, path: path())
        }
    }

    /// Bytes written through a mapping: msync(2) with MS_SYNC.
    static func mapping(
        _ address: UnsafeMutablePointer<UInt64>, _ length: Int, path: FilePath
    ) throws(LarderError) {
        if FileSystem.perform("msync", at: path.string, { msync(address, length, MS_SYNC) }) != 0 {
            throw .system("msync", errno, path: path)
        }
    }

    /// Tells the kernel to begin to write a file whose sync follows. sync_file_range(2), a hint; no effect on Darwin.
    static func begin(_ descriptor: OwnedDescriptor) { clarder_begin_writing(descriptor.raw) }

    /// All body files written so far, at a checkpoint of very many: syncfs(2), one call instead of one a file. It
    /// writes the files of all processes on that file system. Where the system or the volume refuses it, there is no
    /// checkpoint, and the files stay suspect after a crash of the machine.
    static func fileSystem(_ directory: Directory) throws(LarderError) {
        let result = FileSystem.perform("syncfs", at: directory.place) {
            clarder_sync_file_system(directory.descriptor.raw)
        }
        if result != 0 {
            throw .system("syncfs", errno, path: directory.path)
        }
    }
}
