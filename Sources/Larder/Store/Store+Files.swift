import SystemPackage

/// The way in which a file becomes a body, or a body a file.
public enum TransferMethod: Sendable, Hashable {
    /// Shares blocks with the original if the file system can (FICLONE), else copies inside the kernel, else byte by
    /// byte.
    case copy
    /// Gives the original a second name in the store (link(2)), or copies it if that is not possible (another file
    /// system, another user's file), and removes the original once the entry is on disk.
    case move
    /// A second name for the same file (link(2)), same file system only. A write to one is a write to both: use it for
    /// files that never change.
    case link
}

extension Store {
    /// Stores the file at `path` under `key` without passing its bytes through the caller, and returns the digest.
    ///
    /// The file is read once, to hash it; with `move` and `link` that is all. It must not change during the call. A
    /// file up to the inline threshold is stored in the index whatever the method.
    ///
    /// `move` stores durably, whatever `options` and the configuration say, and only then removes the file: at any
    /// moment, even after power loss, the bytes are under `path` or in the store, which keeps them as long as the
    /// entry's policy says (`memoryOnly`: as long as the process lives). If `path` then names another file, or one that
    /// was written to, it stays; no other file may take its place between that check and the removal. For a symbolic
    /// link, the link is removed, not its target.
    ///
    /// - Parameters:
    ///   - path: a regular file, or a symbolic link to one.
    ///   - key: the key to store it under, 1 to 65,536 bytes.
    ///   - options: as for `put`. Default: no tags, and the store's lifetime.
    ///   - method: copies, moves or links the file. Default: copies it.
    ///   - digest: the SHA-256 the file is declared to have. Nil (the default): computed and trusted.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: the errors of `put`; `invalidArgument` if `path` is not a regular file; `lengthMismatch` if it changed
    ///   during the call; `io` if a moved file cannot be removed: then the entry is stored, and the file stays. After
    ///   every other error the file is also where it was.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func adopt(
        _ path: some PathConvertible, for key: Key, _ options: PutOptions = PutOptions(),
        method: TransferMethod = .copy, digest: Digest? = nil
    ) throws -> Digest {
        try adopted(path.filePath(), for: key, options, method: method, digest: digest).digest
    }

    /// As `adopt`; also returns the number of bytes stored, as the file may change at any time.
    package func adopted(
        _ path: FilePath, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) throws -> (digest: Digest, length: Int64) {
        let began = engine.uptime.uptime()
        let adoption = try Adoption(path, key, options, method, digest, self)
        let put = try adoption.prepare()
        try writing(discarding: put).put(put)
        try adoption.finish()
        engine.notePut(since: began)
        return (put.digest, Int64(put.length))
    }

    /// As `adopt`; also returns the number of bytes stored.
    package func adopted(
        _ path: FilePath, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) async throws -> (digest: Digest, length: Int64) {
        try Task.checkCancellation()
        let began = engine.uptime.uptime()
        let (adoption, put) = try await IOPool.long.runCancellable { [self] in
            let adoption = try Adoption(path, key, options, method, digest, self)
            return (adoption, try adoption.prepare())
        }
        try await writing(discarding: put).put(put)
        if method == .move { try await IOPool.shared.run { try adoption.finish() } }
        engine.notePut(since: began)
        return (put.digest, Int64(put.length))
    }

    /// Writes the body of `key` to a new file at `path`. `link` and `copy` need no second copy of the bytes if the file
    /// system allows that; `move` is refused, as the store keeps the body.
    ///
    /// The file appears under its name when it is complete. Until then it has a temporary name in the same directory,
    /// which starts with `.larder-`. Only a process that dies leaves such a file behind.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - path: the path of the new file; nothing may exist there.
    ///   - method: `copy` (the default), or `link` for a file that no one writes to.
    /// - Returns: false if there is no fresh entry.
    /// - Throws: `invalidArgument` (`move`, or a file in the way), `io`, `noSpace`: then no part of the file is left.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func export(_ key: Key, to path: some PathConvertible, method: TransferMethod = .copy) throws -> Bool {
        let path = try path.filePath()
        guard method != .move else {
            throw LarderError(.invalidArgument, "a body cannot be moved out of the store: copy it and remove the entry")
        }
        guard let entry = try get(key) else { return false }
        if try FileSystem.status(path: path) != nil {
            throw LarderError(
                .invalidArgument, "\(path) exists: remove it or export to another path", path: path, key: key)
        }
        if method == .link, case .file(_, let source) = entry.body.storage,
            FileSystem.link(path: source.path, as: path) == 0
        {
            return true
        }
        let temporary = path.removingLastComponent().appending(
            ".larder-" + Layout.hex(UInt64.random(in: 0 ... .max), width: 16))
        let target = try FileSystem.open(path: temporary, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o644)
        do {
            switch entry.body.storage {
            case .memory(let bytes):
                try FileSystem.write(target, bytes, at: 0, path: temporary)
            case .file(let source, let place):
                try FileTransfer.copy(source, place.path, to: target, temporary, entry.body.length.bytes)
            case .compressed:
                try FileSystem.write(target, try entry.body.bytes(), at: 0, path: temporary)
            case .sealed(let body):
                try FileTransfer.copy(body.length, { try entry.body.read(into: $0, at: $1) }, body.path) {
                    try FileSystem.write(target, $0, at: $1, path: temporary)
                }
            }
            try place(temporary, at: path, key)
        } catch {
            FileSystem.unlink(path: temporary)
            throw error
        }
        return true
    }

    /// Gives a whole file its name, unless that is taken meanwhile: link(2) refuses then, rename(2) would replace.
    private func place(_ temporary: FilePath, at path: FilePath, _ key: Key) throws(LarderError) {
        let number = FileSystem.link(path: temporary, as: path)
        if number == 0 {
            FileSystem.unlink(path: temporary)
            return
        }
        if try FileSystem.status(path: path) != nil {
            throw LarderError(
                .invalidArgument, "\(path) exists: remove it or export to another path", path: path, key: key)
        }
        // A file system without hard links.
        let renamed = FileSystem.rename(path: temporary, to: path)
        if renamed != 0 { throw .system("rename", renamed, path: path) }
    }
}

/// Copies of whole files.
enum FileTransfer {
    /// FICLONE, else copy_file_range(2), else read and write. Throws `CancellationError` in a cancelled task.
    static func copy(
        _ source: OwnedDescriptor, _ sourcePath: FilePath, to target: OwnedDescriptor, _ targetPath: FilePath,
        _ length: Int64
    ) throws {
        if FileSystem.clone(source, to: target) { return }
        var done: Int64 = 0
        while done < length {
            try Cancellation.check()
            let count = FileSystem.copyRange(source, to: target, at: done, length: min(length - done, 64 << 20))
            if count <= 0 { break }
            done += count
        }
        if done == length { return }
        try copy(source, sourcePath, length, from: done) { try FileSystem.write(target, $0, at: $1, path: targetPath) }
    }

    /// Reads a file, and gives what it has to `write`, with its offset.
    static func copy(
        _ source: OwnedDescriptor, _ sourcePath: FilePath, _ length: Int64, from start: Int64 = 0,
        to write: (UnsafeRawBufferPointer, Int64) throws -> Void
    ) throws {
        try copy(
            length, from: start, { try FileSystem.read(source, into: $0, at: $1, path: sourcePath) }, sourcePath,
            to: write)
    }

    /// As above, of what `read` reads at an offset.
    static func copy(
        _ length: Int64, from start: Int64 = 0, _ read: (UnsafeMutableRawBufferPointer, Int64) throws -> Int,
        _ sourcePath: FilePath, to write: (UnsafeRawBufferPointer, Int64) throws -> Void
    ) throws {
        var done = start
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { space.deallocate() }
        while done < length {
            try Cancellation.check()
            let count = try read(space, done)
            if count == 0 {
                throw LarderError(
                    .lengthMismatch, "\(sourcePath) became shorter while it was copied: try again", path: sourcePath)
            }
            let part = UnsafeRawBufferPointer(rebasing: space[..<min(count, Int(length - done))])
            try write(part, done)
            done += Int64(part.count)
        }
    }
}
