@_exported import struct SystemPackage.FileDescriptor
@_exported import struct SystemPackage.FilePath

#if canImport(FoundationEssentials)
    public import struct FoundationEssentials.URL
#else
    public import struct Foundation.URL
#endif

// The same calls for paths of other types: a program that has a `URL` or a `String` need import nothing else.

extension Store {
    /// Opens the store in the directory at `path`. Meaning and errors are those of `init(at:_:)` for a `FilePath`.
    public convenience init(at path: String, _ configuration: Configuration = Configuration()) throws {
        try self.init(at: FilePath(checking: path), configuration)
    }

    /// Opens the store in the directory that a file URL names. Meaning and errors are those of `init(at:_:)` for a
    /// `FilePath`; `invalidArgument` also for any other URL.
    public convenience init(at url: URL, _ configuration: Configuration = Configuration()) throws {
        try self.init(at: FilePath(fileURL: url), configuration)
    }

    /// Opens the store in the directory at `path`, on a thread that may wait for the disk: the asynchronous form of
    /// `init(at:_:)`.
    /// - Parameters:
    ///   - path: the directory; it is created if it is missing.
    ///   - configuration: settings of the store. Default: no budget.
    /// - Returns: an open store.
    /// - Throws: as `init(at:_:)`; `CancellationError`.
    public static func open(at path: String, _ configuration: Configuration = Configuration()) async throws -> Store {
        try await open(at: FilePath(checking: path), configuration)
    }

    /// Opens the store in the directory that a file URL names, on a thread that may wait for the disk: the asynchronous
    /// form of `init(at:_:)`.
    /// - Parameters:
    ///   - url: a file URL of the directory; it is created if it is missing.
    ///   - configuration: settings of the store. Default: no budget.
    /// - Returns: an open store.
    /// - Throws: as `init(at:_:)`; `CancellationError`.
    public static func open(at url: URL, _ configuration: Configuration = Configuration()) async throws -> Store {
        try await open(at: FilePath(fileURL: url), configuration)
    }

    /// Stores the file that a file URL names. Meaning, result and errors are those of `adopt(_:for:_:method:digest:)`
    /// for a `FilePath`; `invalidArgument` also for any other URL.
    @discardableResult
    public func adopt(
        _ url: URL, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) throws -> Digest {
        try adopt(FilePath(fileURL: url), for: key, options, method: method, digest: digest)
    }

    /// Stores the file that a file URL names.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    @discardableResult
    public func adopt(
        _ url: URL, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) async throws -> Digest {
        try await adopt(FilePath(fileURL: url), for: key, options, method: method, digest: digest)
    }

    /// Stores the file at `path`. Meaning, result and errors are those of `adopt(_:for:_:method:digest:)` for a
    /// `FilePath`.
    @discardableResult
    public func adopt(
        _ path: String, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) throws -> Digest {
        try adopt(FilePath(checking: path), for: key, options, method: method, digest: digest)
    }

    /// Stores the file at `path`.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    @discardableResult
    public func adopt(
        _ path: String, for key: Key, _ options: PutOptions = PutOptions(), method: TransferMethod = .copy,
        digest: Digest? = nil
    ) async throws -> Digest {
        try await adopt(FilePath(checking: path), for: key, options, method: method, digest: digest)
    }

    /// Writes the body of `key` to a new file. Meaning, result and errors are those of `export(_:to:method:)` for a
    /// `FilePath`; `invalidArgument` also for a URL that names no file.
    @discardableResult
    public func export(_ key: Key, to url: URL, method: TransferMethod = .copy) throws -> Bool {
        try export(key, to: FilePath(fileURL: url), method: method)
    }

    /// Writes the body of `key` to a new file.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    @discardableResult
    public func export(_ key: Key, to url: URL, method: TransferMethod = .copy) async throws -> Bool {
        try await export(key, to: FilePath(fileURL: url), method: method)
    }

    /// Writes the body of `key` to a new file at `path`. Meaning, result and errors are those of `export(_:to:method:)`
    /// for a `FilePath`.
    @discardableResult
    public func export(_ key: Key, to path: String, method: TransferMethod = .copy) throws -> Bool {
        try export(key, to: FilePath(checking: path), method: method)
    }

    /// Writes the body of `key` to a new file at `path`.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    @discardableResult
    public func export(_ key: Key, to path: String, method: TransferMethod = .copy) async throws -> Bool {
        try await export(key, to: FilePath(checking: path), method: method)
    }
}

extension FilePath {
    /// The path that a file URL names.
    init(fileURL url: URL) throws(LarderError) {
        let isLocal = url.host.map { $0.isEmpty || $0 == "localhost" } ?? true
        let path = url.withUnsafeFileSystemRepresentation { $0.map { FilePath(platformString: $0) } }
        guard url.isFileURL, isLocal, let path, !path.isEmpty else {
            throw LarderError(
                .invalidArgument, "\(url) does not name a file of this machine: pass a file URL, or a path")
        }
        self = path
    }

    /// The path that a text is; a NUL would end it for the system.
    init(checking text: String) throws(LarderError) {
        if text.utf8.contains(0) {
            throw LarderError(.invalidArgument, "the path '\(Key(text))' contains a NUL: a path cannot")
        }
        self.init(text)
    }
}
