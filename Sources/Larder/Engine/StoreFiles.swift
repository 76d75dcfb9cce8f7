import SystemPackage

/// The directories of an open store, and the operations on files in them.
struct StoreFiles: Sendable {
    let root: Directory
    let index: Directory
    let blobs: Directory
    let staging: Directory
    let trash: Directory
    /// See `FileSystem.hasFinalBlocks`.
    let hasFinalBlocks: Bool
    /// See `FileSystem.speculates`.
    let speculates: Bool
    /// Nil in a store that is not encrypted.
    let cipher: StoreCipher?

    init(root: Directory, _ cipher: StoreCipher? = nil) throws(LarderError) {
        self.root = root
        self.cipher = cipher
        index = try root.directory(Layout.index)
        blobs = try root.directory(Layout.blobs)
        staging = try root.directory(Layout.staging)
        trash = try root.directory(Layout.trash)
        // It is there, and no link.
        _ = try root.directory(Layout.quarantine)
        hasFinalBlocks = FileSystem.hasFinalBlocks(blobs)
        speculates = FileSystem.speculates(index)
    }

    /// Opened for each use: most stores have nothing in it, and a process may have many stores open.
    var quarantine: Directory { get throws(LarderError) { try root.directory(Layout.quarantine) } }

    /// `st_blocks` x 512 of the files that neither grow nor are counted in the index.
    func smallFilesAllocated() throws(LarderError) -> Int64 {
        var sum: Int64 = 0
        for (name, directory) in [
            (Layout.format, root), (Layout.encryption, root), (Layout.newEncryption, root),
            (Layout.tag, root), (Layout.ledger, index),
            (Layout.counters, index),
        ] {
            if let status = try FileSystem.status(name, in: directory), status.isRegular { sum += status.allocated }
        }
        return sum
    }

    /// Writes `CACHEDIR.TAG` again if its contents are wrong.
    func restoreTag() throws(LarderError) {
        let expected = Array(Layout.tagContents.utf8)
        if try FileSystem.contents(Layout.tag, in: root, limit: expected.count + 1) == expected { return }
        try FileSystem.unlink(Layout.tag, in: root)
        let file = try FileSystem.open(Layout.tag, in: root, flags: O_WRONLY | O_CREAT | O_EXCL)
        try FileSystem.write(file, expected, at: 0, path: root.path(of: Layout.tag))
    }

    /// Opens a body file: published, or still under the name it was staged with. Nil if it is neither.
    func openBlob(_ head: BlobRecord) throws(LarderError) -> OwnedDescriptor? {
        let name = Layout.blob(name(of: head.digest))
        if let file = try FileSystem.openIfPresent(name, in: blobs, flags: O_RDONLY) { return file }
        if let file = try FileSystem.openIfPresent(head.token.name, in: staging, flags: O_RDONLY) { return file }
        // Published between the two looks.
        return try FileSystem.openIfPresent(name, in: blobs, flags: O_RDONLY)
    }

    /// What is wrong with a file that was opened as that of a body; nil if it has the kind and the length of its
    /// record.
    func fault(of file: OwnedDescriptor, _ head: BlobRecord) throws(LarderError) -> String? {
        let status = try FileSystem.status(file, path: nil)
        if isWhole(status, head) { return nil }
        if !status.isRegular { return Self.isNoFile }
        return "the file has \(status.size) bytes instead of \(fileLength(head))"
    }

    /// The same for what could not be opened; nil if it is not known that this file alone is at fault.
    func fault(opening head: BlobRecord, _ error: LarderError) -> String? {
        guard let number = error.cause as? Errno,
            // A symbolic link, a socket, a file without the right to be read.
            [.tooManySymbolicLinkLevels, .noSuchAddressOrDevice, .permissionDenied].contains(number),
            // Its directory can be searched.
            let status = try? blobStatus(head)
        else { return nil }
        return status.isRegular ? "the file cannot be opened: \(number)" : Self.isNoFile
    }

    private static let isNoFile = "there is something else than a file"

    /// True if the file of a body is there, and has the kind and the length of its record.
    func hasWhole(_ head: BlobRecord) throws(LarderError) -> Bool {
        guard let status = try blobStatus(head) else { return false }
        return isWhole(status, head)
    }

    private func isWhole(_ status: FileSystem.Status, _ head: BlobRecord) -> Bool {
        status.isRegular && status.size == fileLength(head)
    }

    /// Opens the file of a body that a removal moved to `trash/` and did not commit, or has yet to commit; nil if there
    /// is none. For a body whose record is there and whose file is at neither of its places. A store that may write
    /// puts the file back instead.
    func openDiscarded(_ head: BlobRecord) throws -> OwnedDescriptor? {
        guard let name = try discardedName(head),
            let file = try FileSystem.openIfPresent(name, in: trash, flags: O_RDONLY),
            try FileSystem.status(file, path: trash.path(of: name)).size == fileLength(head)
        else { return nil }
        return file
    }

    /// The name in `trash/` of the file of a body; nil if there is none. Of several the one whose bytes match: a file
    /// that a power loss tore, and the one that was put in its place, may both lie there.
    func discardedName(_ head: BlobRecord) throws -> String? {
        let names = try discarded(head.digest)
        guard names.count > 1 else { return names.first }
        return try names.first { name in
            guard let file = try FileSystem.openIfPresent(name, in: trash, flags: O_RDONLY) else { return false }
            return try matches(file, head)
        }
    }

    /// The names in `trash/` of files with that digest.
    func discarded(_ digest: Digest) throws(LarderError) -> [String] {
        let name = name(of: digest)
        return try trash.names().filter { Layout.parseTrash($0)?.name == name }
    }

    /// The status of a body file wherever it is; nil if it is gone.
    func blobStatus(_ head: BlobRecord) throws(LarderError) -> FileSystem.Status? {
        if let status = try FileSystem.status(Layout.blob(name(of: head.digest)), in: blobs) { return status }
        if let status = try FileSystem.status(head.token.name, in: staging) { return status }
        return try FileSystem.status(Layout.blob(name(of: head.digest)), in: blobs)
    }

    /// Renames a staged file into `blobs/`. Call it under the writer lock while the index has the blob.
    /// False if there is no such staged file: it was published before.
    @discardableResult
    func publish(_ head: BlobRecord) throws(LarderError) -> Bool {
        let name = Layout.blob(name(of: head.digest))
        if try FileSystem.rename(head.token.name, in: staging, to: name, in: blobs) { return true }
        guard try FileSystem.status(head.token.name, in: staging) != nil else { return false }
        try makeShard(String(name.prefix(2)))
        try Sync.names(blobs)
        return try FileSystem.rename(head.token.name, in: staging, to: name, in: blobs)
    }

    /// The path of a file in `staging/`, for messages.
    func path(of file: StagedFile) -> FilePath { staging.path(of: file.token.name) }

    /// Makes a shard's directory that was removed from outside. What someone else has put in its place moves to
    /// `quarantine/`, where it is named as a foreign file and stays.
    func makeShard(_ name: String) throws(LarderError) {
        if let status = try FileSystem.status(name, in: blobs), !status.isDirectory {
            let number = String(UInt32.random(in: 0 ... .max), radix: 16)
            try FileSystem.rename(name, in: blobs, to: "\(Layout.blobs)-\(name)-\(number)", in: quarantine)
        }
        try FileSystem.makeDirectory(name, in: blobs)
    }

    /// The shard directories that exist: all 256, unless one was removed or replaced from outside.
    func shards() throws(LarderError) -> [Directory] {
        var found: [Directory] = []
        for name in Layout.shards where try FileSystem.status(name, in: blobs)?.isDirectory == true {
            found.append(try blobs.directory(name))
        }
        return found
    }

    /// Where a body file goes back to if it is not removed after all.
    enum Place {
        case blobs
        case staging
    }

    /// Renames a body file into `trash/`, from wherever it is. Nil if it is gone. Call it under the writer lock.
    /// - Parameter isNew: true if the file was not committed yet: then what lies under its name in `blobs/` is an
    ///   orphan.
    func discard(_ head: BlobRecord, as name: String, isNew: Bool) throws(LarderError) -> Place? {
        if isNew { return try FileSystem.rename(head.token.name, in: staging, to: name, in: trash) ? .staging : nil }
        if try FileSystem.rename(Layout.blob(self.name(of: head.digest)), in: blobs, to: name, in: trash) {
            return .blobs
        }
        // Not back to `staging/`: its store may be dead, and a sweep about to unlink what is left there. It is
        // committed, so it may be published.
        return try FileSystem.rename(head.token.name, in: staging, to: name, in: trash) ? .blobs : nil
    }

    /// Removes a body file, wherever it is. Call it under the writer lock.
    func unlink(_ head: BlobRecord) throws {
        if try FileSystem.unlink(Layout.blob(name(of: head.digest)), in: blobs) { return }
        if try FileSystem.unlink(head.token.name, in: staging) { return }
        // Moved for a removal that was not made, and could not be moved back.
        if let name = try discardedName(head) { try FileSystem.unlink(name, in: trash) }
    }

    /// Takes a `discard` back. Call it under the writer lock.
    func restore(_ head: BlobRecord, from name: String, to place: Place = .blobs) throws(LarderError) {
        if place == .staging {
            try FileSystem.rename(name, in: trash, to: head.token.name, in: staging)
            return
        }
        let blob = Layout.blob(self.name(of: head.digest))
        if try FileSystem.rename(name, in: trash, to: blob, in: blobs) { return }
        // Gone, or its shard's directory is.
        try makeShard(String(blob.prefix(2)))
        try FileSystem.rename(name, in: trash, to: blob, in: blobs)
    }

    /// Sum of allocated bytes of the store's own files in a directory, the `counted` ones left out.
    func allocated(
        in directory: Directory, _ place: Layout.Place, counted: (String) throws -> Bool = { _ in false }
    ) throws -> Int64 {
        var sum: Int64 = 0
        for name in try directory.names(of: place) {
            if try counted(name) { continue }
            if let status = try FileSystem.status(name, in: directory), status.isRegular { sum += status.allocated }
        }
        return sum
    }
}
