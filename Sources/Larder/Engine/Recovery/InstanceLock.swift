/// The mark by which other processes see that this open store is alive: a locked file in `staging/`.
///
/// The lock ends with the process, however that ends (flock(2)), so what a dead process left is distinguished from what
/// a live one is writing, without waiting for a grace period.
final class InstanceLock: Sendable {
    let instance: UInt64
    private let descriptor: OwnedDescriptor
    private let staging: Directory

    /// Takes a new instance number and locks its file.
    init(staging: Directory) throws(LarderError) {
        var generator = SystemRandomNumberGenerator()
        while true {
            let candidate = UInt64.random(in: 2...(.max), using: &generator)
            let name = Layout.instanceLock(candidate)
            let descriptor = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
                try FileSystem.open(name, in: staging, flags: O_RDWR | O_CREAT | O_EXCL)
            }
            // A sweeper may have taken the file for a dead one's between the two calls, and removed it.
            guard try FileSystem.lock(descriptor, wait: false, path: staging.path(of: name)),
                let named = try FileSystem.status(name, in: staging),
                try named.inode == FileSystem.status(descriptor, path: nil).inode
            else {
                // Another process may only have looked at it; no other instance has this name.
                try FileSystem.unlink(name, in: staging)
                continue
            }
            instance = candidate
            self.descriptor = descriptor
            self.staging = staging
            return
        }
    }

    /// Removes the file and its lock, and not only with the descriptor: a system that suspends processes may end one
    /// that holds a lock, though its store is closed.
    func remove() throws(LarderError) {
        try FileSystem.unlink(Layout.instanceLock(instance), in: staging)
        FileSystem.unlock(descriptor)
    }

    /// True if another instance lives. Shares the lock with others who ask at the same moment, so that none takes
    /// another for the instance.
    static func isAlive(_ instance: UInt64, staging: Directory) throws(LarderError) -> Bool {
        let name = Layout.instanceLock(instance)
        let opened = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor? in
            try FileSystem.openIfPresent(name, in: staging, flags: O_RDONLY)
        }
        guard let descriptor = opened else { return false }
        guard try FileSystem.lock(descriptor, .shared, wait: false, path: staging.path(of: name)) else { return true }
        // Not only closed: a process that is being started may have a copy, and the lock with it.
        FileSystem.unlock(descriptor)
        return false
    }

    /// Locks the file of another instance if that is dead; nil while it lives.
    /// - Parameter missingIsDead: what a missing file means. If no other process has the store open, the instance is
    ///   dead. Otherwise a cleaner of temporary files may have removed it.
    static func seize(_ instance: UInt64, staging: Directory, missingIsDead: Bool) throws(LarderError) -> Seized? {
        let name = Layout.instanceLock(instance)
        let opened = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor? in
            try FileSystem.openIfPresent(name, in: staging, flags: O_RDWR)
        }
        guard let descriptor = opened else {
            return missingIsDead ? Seized(descriptor: nil) : nil
        }
        guard try FileSystem.lock(descriptor, wait: false, path: staging.path(of: name)) else { return nil }
        return Seized(descriptor: descriptor)
    }

    /// Keeps a dead instance's lock while its files are swept.
    final class Seized: Sendable {
        let descriptor: OwnedDescriptor?

        init(descriptor: OwnedDescriptor?) { self.descriptor = descriptor }

        deinit { if let descriptor { FileSystem.unlock(descriptor) } }
    }
}
