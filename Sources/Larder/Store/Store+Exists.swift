import SystemPackage

extension Store {
    /// True if there is a store at `path`; for callers that must not create one at a mistyped path.
    ///
    /// A store that another process is creating exists as soon as its `FORMAT` file does. Takes no lock and changes
    /// nothing.
    /// - Throws: `formatMismatch` if a store was there and lost its `FORMAT` file; `invalidArgument` if `path` is a
    ///   file; `io`.
    public static func exists(at path: some PathConvertible) throws(LarderError) -> Bool {
        let path = try path.filePath()
        guard let status = try FileSystem.status(path: path) else { return false }
        guard status.isDirectory else { throw Opening.notADirectory(path) }
        switch try DirectoryState(Directory(path: path)) {
        case .none: return false
        case .store: return true
        case .lostFormat: throw DirectoryState.lostFormat(path)
        }
    }
}
