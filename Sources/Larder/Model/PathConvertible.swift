@_exported import struct SystemPackage.FileDescriptor
@_exported import struct SystemPackage.FilePath

#if canImport(FoundationEssentials)
    public import struct FoundationEssentials.URL
#else
    public import struct Foundation.URL
#endif

/// A path, as calls take it: a `FilePath`, a `String`, or a file `URL`. A program that has one of these needs no other
/// import.
public protocol PathConvertible: Sendable {
    /// The path.
    /// - Throws: `invalidArgument` for a `String` with a NUL, and for a `URL` that names no file of this machine.
    func filePath() throws(LarderError) -> FilePath
}

extension FilePath: PathConvertible {
    /// The path itself.
    public func filePath() throws(LarderError) -> FilePath { self }
}

extension String: PathConvertible {
    /// The text as a path. Throws `invalidArgument` if it contains a NUL.
    public func filePath() throws(LarderError) -> FilePath {
        // It would end the path for the system.
        if utf8.contains(0) {
            throw LarderError(.invalidArgument, "the path '\(Key(self))' contains a NUL: a path cannot")
        }
        return FilePath(self)
    }
}

extension URL: PathConvertible {
    /// The path that a file URL names. Throws `invalidArgument` for any other URL.
    public func filePath() throws(LarderError) -> FilePath {
        let isLocal = host.map { $0.isEmpty || $0 == "localhost" } ?? true
        let path = withUnsafeFileSystemRepresentation { $0.map { FilePath(platformString: $0) } }
        guard isFileURL, isLocal, let path, !path.isEmpty else {
            throw LarderError(
                .invalidArgument, "\(self) does not name a file of this machine: pass a file URL, or a path")
        }
        return path
    }
}
