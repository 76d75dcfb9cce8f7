import SystemPackage

/// A file of the caller's on its way into a store: `Store.adopt`.
///
/// A move links the file into `staging/` like any other body, commits it durably, and removes the caller's name last.
/// So a crash at any moment leaves the bytes under one name at least: what the sweep removes from `staging/` is a
/// second name, or a copy.
struct Adoption: Sendable {
    private let path: FilePath
    private let key: Key
    private let options: PutOptions
    private let method: TransferMethod
    private let declared: Digest?
    private let store: Store
    private let source: OwnedDescriptor
    private let status: FileSystem.Status

    /// Opens the file. Errors as `Store.adopt`.
    init(
        _ path: FilePath, _ key: Key, _ options: PutOptions, _ method: TransferMethod, _ digest: Digest?, _ store: Store
    ) throws {
        _ = try store.writing()
        try options.validate(key: key)
        self.path = path
        self.key = key
        var options = options
        // The removal of the original may be on disk before a relaxed commit is.
        if method == .move { options.durability = .durable }
        self.options = options
        self.method = method
        declared = digest
        self.store = store
        if method == .move { try Self.requireOutside(store.path, path) }
        source = try Self.open(path)
        status = try FileSystem.status(source, path: path)
        guard status.isRegular else {
            throw LarderError(.invalidArgument, "\(path) is not a regular file: only those can be adopted", path: path)
        }
        // Files that the system makes as they are read, below /proc for example, say that they have no bytes.
        if status.size == 0 {
            let count = try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) {
                try FileSystem.read(source, into: $0, at: 0, path: path)
            }
            guard count == 0 else {
                throw LarderError(
                    .lengthMismatch,
                    "\(path) says that it has no bytes, and has some: store what you read from it with a writer",
                    path: path)
            }
        }
    }

    private static func open(_ path: FilePath) throws(LarderError) -> OwnedDescriptor {
        do throws(LarderError) {
            return try FileSystem.open(path: path, flags: O_RDONLY | O_NONBLOCK)
        } catch {
            // The file is the caller's: what is said of files of the store does not apply.
            guard error.cause as? Errno == .permissionDenied else { throw error }
            throw LarderError(.io, "no permission to read \(path)", path: path, key: nil, cause: error.cause)
        }
    }

    /// Refuses to move a file of the store itself: its name would be removed in the end, and the body with it.
    private static func requireOutside(_ store: FilePath, _ path: FilePath) throws(LarderError) {
        let parent = path.removingLastComponent()
        let folder = FileSystem.resolved(parent.isEmpty ? "." : parent)
        guard folder.starts(with: FileSystem.resolved(store)) else { return }
        throw LarderError(
            .invalidArgument, "\(path) is a file of the store itself: only files outside can be moved into it",
            path: path)
    }

    /// Takes the bytes in and hashes them. After an error no part of the file is left in the store.
    func prepare() throws -> PendingPut {
        let budget = try store.engine.budget()
        try Store.checkSize(status.size, key, budget)
        if status.size > store.inlineLimit(budget), options.storagePolicy != .memoryOnly {
            return try stage()
        }
        let bytes = try [UInt8](unsafeUninitializedCapacity: Int(status.size)) { buffer, count in
            let space = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[..<Int(status.size)])
            count = try FileSystem.read(source, into: space, at: 0, path: path)
        }
        if bytes.count < status.size { throw changed() }
        try requireUnchanged()
        let digest = Digest.of(bytes)
        if let declared, declared != digest { throw Store.mismatch(key, declared, digest) }
        return store.makePut(key, digest, UInt64(bytes.count), .inline(bytes), options)
    }

    /// The entry is committed: removes the original of a move, if that is still the file that was stored.
    func finish() throws {
        guard method == .move else { return }
        store.engine.reach("adopt.committed")
        guard let left = try FileSystem.status(path: path), left.isSame(as: status) else { return }
        let number = FileSystem.unlink(path: path)
        if number != 0, number != ENOENT { throw LarderError.system("unlink", number, path: path) }
        store.engine.reach("adopt.removed")
    }

    private func stage() throws -> PendingPut {
        let writing = try store.writing()
        let length = store.engine.files.fileLength(status.size)
        let reservation = max(StagedFile.allocation(length), status.allocated)
        try writing.roomMaker.reserve(reservation, for: key)
        return try writing.staged.whileStaging { try stage(writing, reservation) }
    }

    private func stage(_ writing: Engine.Writing, _ reservation: Int64) throws -> PendingPut {
        let engine = store.engine
        let token = writing.staged.nextToken()
        var file = StagedFile(token: token, descriptor: source, length: status.size, reserved: reservation)
        do {
            if try method != .copy && engine.files.cipher == nil && link(as: token) {
                engine.reach("adopt.named")
            } else {
                file = try copy(as: token, reserved: reservation)
                engine.reach("adopt.copied")
            }
            // The staged file itself is hashed: what the store has is what the digest names.
            guard let digest = try file.content.digest(length: UInt64(status.size)) else { throw changed() }
            try requireUnchanged()
            if let declared, declared != digest { throw Store.mismatch(key, declared, digest) }
            if file.seal != nil {
                let content = file.content
                try writing.fullDisk.writing(Int64(BodySeal.chunkLength), isStaging: true) {
                    try content.finish(digest, length: status.size)
                }
            }
            try writing.stager.settle(&file, isDurable: store.isDurable(options))
            return store.makePut(key, digest, UInt64(status.size), .staged(file), options)
        } catch {
            writing.staged.discard(file)
            throw error
        }
    }

    /// Gives the file a second name in `staging/`. False where that cannot be done, and it has to be copied.
    private func link(as token: StagingToken) throws -> Bool {
        // The link would be linked instead of the file it names.
        guard FileSystem.isRegular(unfollowed: path) == true else { return false }
        let staging = store.engine.files.staging
        switch FileSystem.link(path: path, as: token.name, in: staging) {
        case 0: break
        // link(2): another file system or mount; no hard links there, or none to another user's file; too many.
        case EXDEV, EPERM, EMLINK, ENOTSUP, EOPNOTSUPP, ENOSYS: return false
        case let number: throw LarderError.system("link", number, path: path)
        }
        // Another file may have come under that name since this one was opened.
        guard try FileSystem.status(token.name, in: staging)?.isSame(as: status) == true else { throw changed() }
        return true
    }

    private func copy(as token: StagingToken, reserved: Int64) throws -> StagedFile {
        let writing = try store.writing()
        let target = try writing.stager.open(token, reserved, isStaging: true)
        let name = store.engine.files.staging.path(of: token.name)
        let seal = writing.stager.newSeal()
        let content = BodyFile(descriptor: target, seal: seal)
        func copy() throws {
            guard let seal else { return try FileTransfer.copy(source, path, to: target, name, status.size) }
            try seal.begin(target)
            try FileTransfer.copy(source, path, status.size) { try content.write($0, at: $1, path: name) }
        }
        do { try copy() } catch let full as LarderError where full.isOfFullDisk {
            // Copying takes long, and others wait: the blocks are taken first, and the copy begins again with them.
            try? FileSystem.truncate(target, to: 0, path: name)
            try writing.fullDisk.writing(reserved, whole: target, isStaging: true) {
                _ = try FileSystem.preallocate(
                    raw: target.raw, offset: 0, length: content.fileLength(status.size), path: name)
            }
            // Where none can be taken ahead.
            do { try copy() } catch let full as LarderError where full.isOfFullDisk {
                try writing.fullDisk.writing(reserved, whole: target, isStaging: true, copy)
            }
        }
        var file = StagedFile(
            token: token, descriptor: target, length: status.size, reserved: reserved, isOwn: true)
        file.seal = seal
        return file
    }

    /// A move removes the original, and a link shares its bytes: neither may be of a file that was written to
    /// meanwhile.
    private func requireUnchanged() throws {
        guard method != .copy, try !FileSystem.status(source, path: path).isSame(as: status) else { return }
        throw changed()
    }

    private func changed() -> LarderError {
        LarderError(
            .lengthMismatch, "\(path) changed while it was adopted: adopt it again; nothing was stored", path: path)
    }
}

extension FileSystem.Status {
    /// True if `other` is of the same file, not written to in between.
    fileprivate func isSame(as other: Self) -> Bool {
        inode == other.inode && device == other.device && size == other.size
            && modifiedNanoseconds == other.modifiedNanoseconds
    }
}
