/// The mark that a process has a store open: a shared flock(2) on its directory `index/`, for as long as it is open.
///
/// The files that say more are `lock.mdb` and those of `InstanceLock`. A cleaner of temporary files may remove them
/// under an open store; this it cannot. A rebuild takes the lock for itself.
final class Presence: Sendable {
    private let index: Directory
    /// True if no other process had the store open. If two open it at the same moment, each may see the other as one
    /// that already has it open.
    let isAlone: Bool

    /// Waits for a rebuild that is under way.
    init(_ index: Directory) throws(LarderError) {
        self.index = index
        index.descriptor.willLock()
        // Where there are no locks, on some read-only file systems, nothing writes.
        isAlone = (try? FileSystem.lock(index.descriptor, wait: false, path: index.path)) ?? false
        _ = try? FileSystem.lock(index.descriptor, .shared, wait: true, path: index.path)
    }

    deinit { release() }

    /// The store is closed. Unlocked, not only closed: a process that is being started has the descriptors of its
    /// parent for a moment, and the lock with them.
    func release() { FileSystem.unlock(index.descriptor) }

    /// The lock for a rebuild; nil if a process has the store open.
    static func exclude(_ index: Directory) throws(LarderError) -> OwnedDescriptor? {
        let directory = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
            try FileSystem.open(".", in: index, flags: O_RDONLY | O_DIRECTORY)
        }
        return try FileSystem.lock(directory, wait: false, path: index.path) ? directory : nil
    }
}
