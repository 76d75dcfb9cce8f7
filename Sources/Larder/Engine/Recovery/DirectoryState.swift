import SystemPackage

/// What a directory holds, found out without a lock: another process may be making or rebuilding a store there.
enum DirectoryState {
    /// No store: nothing, or what is made before `FORMAT`, whether its maker is at work or was killed.
    case none
    /// A store.
    case store
    /// A store whose `FORMAT` is gone: it has an index that was opened for writing.
    case lostFormat

    init(_ root: Directory) throws(LarderError) {
        // `FORMAT` first and last: who makes a store writes it before the ledger.
        if try Self.has(Layout.format, in: root) {
            self = .store
        } else if try Self.has(Layout.index + "/" + Layout.ledger, in: root) {
            self = try Self.has(Layout.format, in: root) ? .store : .lostFormat
        } else {
            self = .none
        }
    }

    private static func has(_ name: String, in root: Directory) throws(LarderError) -> Bool {
        try FileSystem.status(name, in: root) != nil
    }

    static func lostFormat(_ path: FilePath) -> LarderError {
        LarderError(
            .formatMismatch, "the file FORMAT is missing in \(path), but the index is there", remedy: .rebuildIndex,
            path: path)
    }
}
