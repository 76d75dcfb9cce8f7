import SystemPackage

/// How a file becomes a body, or a body a file.
public enum TransferMethod: Sendable, Hashable {
    /// Shares blocks with the original where the file system can (FICLONE), else copies inside the kernel, else by hand.
    case copy
    /// Renames the original into the store, which must be on the same file system; else copies, then removes it.
    case move
    /// A second name for the same file (link(2)), same file system only. Whoever writes to one writes to both: use it
    /// for files that never change.
    case link
}

extension Store {
    /// Stores the file at `path` under `key` without passing its bytes through the caller, and returns the digest.
    ///
    /// The file is read once, to hash it; with `move` and `link` that is all. It must not change meanwhile. A file up to
    /// the inline threshold is stored in the index whatever the method.
    /// Errors: those of `put`; `invalidArgument` if `path` is no regular file.
    @discardableResult
    public func adopt(
        _ path: FilePath, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) throws -> Digest {
        let writing = try writing()
        try options.validate(key: key)
        let source = try FileSystem.open(path: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try FileSystem.status(source, path: path)
        guard status.isRegular else {
            throw LarderError(.invalidArgument, "\(path) is not a regular file: only those can be adopted", path: path)
        }
        let budget = try engine.budget()
        try Store.checkSize(status.size, key, budget)
        let put: PendingPut
        if status.size <= configuration.inlineLimit(budget) || options.storagePolicy == .memoryOnly {
            let bytes = try Body(file: source, path: path, length: ByteCount(status.size)).bytes(in: 0..<status.size)
            let actual = Digest.of(bytes)
            if let digest, digest != actual { throw Store.mismatch(key, digest, actual) }
            put = makePut(key, actual, UInt64(bytes.count), .inline(bytes), options)
        } else {
            put = try adoptLarge(path, source, status, key, options, method, digest, writing)
        }
        do {
            let generation = try submit(put)
            try engine.awaitCommit(generation, put)
            // The only copy: a failure that a relaxed put would report later must still find it.
            if method == .move { try engine.awaitMove(put, writing) }
        } catch {
            if method == .move, case .staged(let file) = put.body { giveBack(file, to: path) }
            throw error
        }
        // Still there if it was stored inline, or copied from another file system.
        if method == .move, let left = try FileSystem.status(path: path), left.inode == status.inode,
            left.device == status.device
        {
            FileSystem.unlink(path: path)
        }
        return put.digest
    }

    /// As the synchronous `adopt`, on a thread that may wait for the disk.
    @discardableResult
    public func adopt(
        _ path: FilePath, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) async throws -> Digest {
        try await IOPool.shared.run { [self] in
            try adopt(path, for: key, options, method: method, digest: digest)
        }
    }

    private func adoptLarge(
        _ path: FilePath, _ source: OwnedDescriptor, _ status: FileSystem.Status, _ key: Key, _ options: PutOptions,
        _ method: TransferMethod, _ declared: Digest?, _ writing: Engine.Writing
    ) throws -> PendingPut {
        let reservation = max(StagedFile.allocation(status.size), status.allocated)
        try engine.reserve(reservation, for: key, writing)
        let token = engine.nextToken(writing)
        var file = StagedFile(token: token, descriptor: source, length: status.size, reserved: reservation)
        do {
            let isNamed = try method != .copy && engine.takeName(path, token, method)
            if isNamed { engine.reach("adopt.named") }
            if !isNamed {
                let target = try FileSystem.open(token.name, in: engine.files.staging, flags: O_RDWR | O_CREAT | O_EXCL)
                file = StagedFile(token: token, descriptor: target, length: status.size, reserved: reservation)
                try FileTransfer.copy(source, path, to: target, engine.files.staging.path(of: token.name), status.size)
            }
            let staged = try FileSystem.status(token.name, in: engine.files.staging)
            let isSame = !isNamed || (staged?.inode == status.inode && staged?.device == status.device)
            // The staged file itself is hashed: what the store has is what the digest names.
            guard isSame, let actual = try Engine.digest(of: file.descriptor, length: UInt64(status.size)) else {
                throw LarderError(
                    .lengthMismatch, "\(path) changed while it was adopted: adopt it again; nothing was stored",
                    path: path)
            }
            if let declared, declared != actual { throw Store.mismatch(key, declared, actual) }
            try engine.settle(&file, isDurable: isDurable(options), writing)
            return makePut(key, actual, UInt64(status.size), .staged(file), options)
        } catch {
            // What was moved goes back to its owner.
            if method == .move { engine.giveNameBack(path, token) }
            engine.discard(file, writing)
            throw error
        }
    }

    /// A file that was moved into the store and could not be kept goes back to where it came from.
    private func giveBack(_ file: StagedFile, to path: FilePath) {
        guard let target = try? FileSystem.open(path: path, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o644) else {
            return
        }
        do {
            let source = engine.files.staging.path(of: file.token.name)
            try FileTransfer.copy(file.descriptor, source, to: target, path, file.length)
        } catch {
            configuration.logger.error("a moved file could not be given back", metadata: ["path": "\(path)"])
        }
    }

    /// Writes the body of `key` to a new file at `path`; false if there is no fresh entry. `link` and `copy` need no second
    /// copy of the bytes where the file system allows; `move` is refused, as the store keeps the body.
    /// Errors: `invalidArgument` (`move`, or a file in the way), `io`, `noSpace`.
    @discardableResult
    public func export(_ key: Key, to path: FilePath, method: TransferMethod = .copy) throws -> Bool {
        guard method != .move else {
            throw LarderError(.invalidArgument, "a body cannot be moved out of the store: copy it and remove the entry")
        }
        guard let entry = try get(key) else { return false }
        if try FileSystem.status(path: path) != nil {
            throw LarderError(
                .invalidArgument, "\(path) exists: remove it or export to another path", path: path, key: key)
        }
        switch entry.body.storage {
        case .memory(let bytes):
            let target = try FileSystem.open(path: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
            try FileSystem.write(target, bytes, at: 0, path: path)
        case .file(let source, let sourcePath):
            if method == .link, FileSystem.link(path: sourcePath, as: path) == 0 { return true }
            let target = try FileSystem.open(path: path, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o644)
            try FileTransfer.copy(source, sourcePath, to: target, path, entry.body.length.bytes)
        }
        return true
    }

    /// As the synchronous `export`, on a thread that may wait for the disk.
    @discardableResult
    public func export(_ key: Key, to path: FilePath, method: TransferMethod = .copy) async throws -> Bool {
        try await IOPool.shared.run { [self] in try export(key, to: path, method: method) }
    }
}

extension Engine {
    /// Gives the caller's file a name in `staging/`: rename(2) or link(2). False if it lies on another file system.
    fileprivate func takeName(_ path: FilePath, _ token: StagingToken, _ method: TransferMethod) throws(LarderError)
        -> Bool
    {
        // A symbolic link would be moved instead of the file it names.
        guard FileSystem.isRegular(unfollowed: path) == true else { return false }
        let number =
            method == .move
            ? FileSystem.rename(path: path, to: token.name, in: files.staging)
            : FileSystem.link(path: path, as: token.name, in: files.staging)
        if number == 0 { return true }
        if number == EXDEV || number == EPERM || number == EMLINK { return false }
        throw .system(method == .move ? "rename" : "link", number, path: path)
    }

    fileprivate func giveNameBack(_ path: FilePath, _ token: StagingToken) {
        guard FileSystem.isRegular(unfollowed: path) == nil else { return }
        _ = FileSystem.rename(token.name, in: files.staging, toPath: path)
    }
}

/// Copies of whole files.
enum FileTransfer {
    /// FICLONE, else copy_file_range(2), else read and write.
    static func copy(
        _ source: OwnedDescriptor, _ sourcePath: FilePath, to target: OwnedDescriptor, _ targetPath: FilePath,
        _ length: Int64
    ) throws(LarderError) {
        if FileSystem.clone(source, to: target) { return }
        var done: Int64 = 0
        while done < length {
            let count = FileSystem.copyRange(source, to: target, at: done, length: min(length - done, 64 << 20))
            if count <= 0 { break }
            done += count
        }
        if done == length { return }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { space.deallocate() }
        while done < length {
            let count = try FileSystem.read(source, into: space, at: done, path: sourcePath)
            if count == 0 {
                throw LarderError(
                    .lengthMismatch, "\(sourcePath) became shorter while it was copied: try again", path: sourcePath)
            }
            let part = UnsafeRawBufferPointer(rebasing: space[..<min(count, Int(length - done))])
            try FileSystem.write(target, part, at: done, path: targetPath)
            done += Int64(part.count)
        }
    }
}
