import SystemPackage

/// Whether a directory may be taken for a store of this user: nothing in it leads to another place, and no other user
/// can change it.
enum DirectoryTrust {
    /// Refuses a directory that other users can change: one of theirs, or one that any user may write to. Any user who
    /// guesses a path below a shared directory of temporary files can take it.
    static func requirePrivate(_ root: Directory, _ configuration: Configuration) throws(LarderError) {
        let status = try FileSystem.status(root.descriptor, path: root.path)
        if status.mode & 0o002 != 0 {
            throw LarderError(
                .io,
                "\(root.path) can be written by every user, who could replace what is in it: remove that permission "
                    + "('chmod o-w'), or choose another directory",
                path: root.path, cause: Errno.permissionDenied)
        }
        if configuration.allowsOtherOwner || [geteuid(), 0].contains(status.owner) { return }
        throw LarderError(
            .io,
            "\(root.path) belongs to another user (uid \(status.owner)), who could replace what is in it",
            remedy: .allowOtherOwner, path: root.path, cause: Errno.permissionDenied)
    }

    /// Refuses links where the store has directories: with a link the store would work in another place.
    static func requireNoLinks(_ files: StoreFiles) throws(LarderError) {
        if let name = try files.blobs.links().first { throw .system("open", ELOOP, path: files.blobs.path(of: name)) }
        // LMDB opens its files by path, and a store that reads may not look at the ledger.
        for name in [Layout.data, Layout.lock, Layout.ledger]
        where try FileSystem.status(name, in: files.index)?.isLink == true {
            throw .system("open", ELOOP, path: files.index.path(of: name))
        }
        for name in [Layout.data, Layout.lock, Layout.ledger] {
            guard let status = try FileSystem.status(name, in: files.index), status.linkCount > 1 else { continue }
            throw LarderError(
                .invalidArgument,
                "\(files.index.path(of: name)) has \(status.linkCount) names (hard links): two stores would write to one index. "
                    + "Make a copy with files of its own ('cp -a'), and remove the other",
                path: files.index.path(of: name))
        }
    }
}
