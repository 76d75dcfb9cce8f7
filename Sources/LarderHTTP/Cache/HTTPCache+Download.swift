import HTTPTypes
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension HTTPCache {
    /// Fetches into a new file, in bounded memory. The file appears under its name when it is complete.
    ///
    /// Until then it has a temporary name in the same directory, which starts with `.larder-`. Only a process that dies
    /// leaves such a file behind.
    ///
    /// - Parameters:
    ///   - request: as for ``fetch(_:body:_:onInformational:)``.
    ///   - path: the path of the new file, which gets the content whatever the status of the answer. Its directory has
    ///     to exist, and the file must not.
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the answer, whose body has been read.
    /// - Throws: ``FetchError``; `LarderError` if the store cannot be read; `Errno` if the file cannot be written. No
    ///   file is left then.
    @discardableResult
    public func download(
        _ request: HTTPRequest, to path: FilePath, _ options: FetchOptions = FetchOptions()
    ) async throws -> FetchResponse {
        // Before anything is loaded: nothing may be there.
        var file = try DownloadFile(for: path)
        var response: FetchResponse
        do {
            response = try await fetch(request, options)
            for try await piece in response.body {
                try await store.performShort { [file] in try file.append(piece) }
            }
            try file.finish()
        } catch {
            file.discard()
            throw error
        }
        response.body = .empty
        return response
    }
}

/// A file that gets its name when it is whole.
private struct DownloadFile: Sendable {
    private let path: FilePath
    private let temporary: FilePath
    private let descriptor: FileDescriptor
    private var isClosed = false

    init(for path: FilePath) throws {
        var status = stat()
        guard path.withPlatformString({ lstat($0, &status) }) != 0 else { throw Errno.fileExists }
        self.path = path
        let name = ".larder-" + String(UInt64.random(in: .min ... .max), radix: 16)
        temporary = path.removingLastComponent().appending(name)
        descriptor = try FileDescriptor.open(
            temporary, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
    }

    func append(_ bytes: [UInt8]) throws { _ = try descriptor.writeAll(bytes) }

    mutating func finish() throws {
        try close()
        // A link does not replace what came under that name meanwhile; rename(2) would.
        let result = temporary.withPlatformString { old in path.withPlatformString { link(old, $0) } }
        if result == 0 {
            _ = temporary.withPlatformString { unlink($0) }
            return
        }
        let number = errno
        // link(2): no hard links on this file system.
        guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number),
            path.withPlatformString({ access($0, F_OK) }) != 0
        else { throw Errno(rawValue: number) }
        guard temporary.withPlatformString({ old in path.withPlatformString { rename(old, $0) } }) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    mutating func discard() {
        try? close()
        _ = temporary.withPlatformString { unlink($0) }
    }

    /// Once: the number may stand for another file at once.
    private mutating func close() throws {
        if isClosed { return }
        isClosed = true
        try descriptor.close()
    }
}
