extension Store {
    /// Changes the key that opens an encrypted store. What is stored stays as it is: the store has a data key of its
    /// own, which is sealed with the new key instead of the old one. So this takes no longer for a large store, and may
    /// be done while the store is open, here and in other processes.
    ///
    /// Someone who has the old key and a copy of the file `encryption` from before can still read the store, and what
    /// is put later. If the old key is known to others, remove the store and make another one.
    /// - Parameters:
    ///   - path: the directory of the store.
    ///   - old: the key that opens it.
    ///   - new: the key that alone opens it from then on.
    /// - Throws: `wrongKey` (not the key of the store, or it is not encrypted), `invalidArgument` (there is no store),
    ///   `corruption` (the file `encryption` is damaged), `locked` (an ephemeral
    ///   store), `io`, `noSpace`. The old key opens the store then.
    public static func changeKey(
        at path: some PathConvertible, from old: EncryptionKey, to new: EncryptionKey
    ) throws {
        let path = try path.filePath()
        guard let status = try FileSystem.status(path: path), status.isDirectory else {
            throw Opening.noStore(at: path)
        }
        let root = try Directory(path: path)
        // Two at once: the later one has to know the key of the earlier one.
        let guardFile = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
            try FileSystem.open(".", in: root, flags: O_RDONLY | O_DIRECTORY)
        }
        // The process that made an ephemeral store keeps the lock for as long as it has the store open.
        guard try FileSystem.lock(guardFile, wait: !Ephemeral.isName(of: path), path: path) else {
            throw LarderError(.locked, "\(path) is an ephemeral store, whose key is not changed", path: path)
        }
        try withExtendedLifetime(guardFile) { try StoreKey.change(from: old, to: new, in: root) }
    }
}
