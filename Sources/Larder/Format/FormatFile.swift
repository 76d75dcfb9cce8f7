import SystemPackage

/// The file `FORMAT`: what the directory is, in which format, and which store it is.
///
/// Four lines of text: `larder`, `format <number>`, `store <32 hex>`, and an empty one at the end.
struct FormatFile: Sendable, Equatable {
    /// The version this code writes at first. Those from 1 on are read.
    static let currentVersion = 4

    /// What a store may hold beside that. The first use of it raises the version of the store.
    enum Feature: Int {
        /// Bodies that are stored compressed.
        case compression = 5
        /// Sealed rows and body files: from the beginning, or never.
        case encryption = 6
    }

    /// The newest version that is read.
    static let newestVersion = Feature.encryption.rawValue
    private static let magic = "larder"

    var version: Int
    var storeID: String

    var contents: String { "\(Self.magic)\nformat \(version)\nstore \(storeID)\n" }

    /// The same store in the format that this code writes.
    var upgraded: FormatFile { FormatFile(version: Self.currentVersion, storeID: storeID) }

    /// For a store of a new name.
    static func fresh(_ version: Int = currentVersion) -> FormatFile {
        var generator = SystemRandomNumberGenerator()
        let id = Layout.hex(generator.next(), width: 16) + Layout.hex(generator.next(), width: 16)
        return FormatFile(version: version, storeID: id)
    }

    /// Reads the file's text. Throws `formatMismatch` for another program's file and for a newer format.
    /// - Parameter hasIndex: whether there is an index next to it: then the directory is a store, whatever this file
    ///   says.
    init(contents: String, path: FilePath, hasIndex: Bool = false) throws(LarderError) {
        let lines = contents.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 4, lines[0] == Self.magic, lines[1].hasPrefix("format "), lines[2].hasPrefix("store "),
            let version = Int(lines[1].dropFirst(7)), version > 0, lines[3].isEmpty,
            version > Self.newestVersion || Self.isStoreID(lines[2].dropFirst(6))
        else {
            if hasIndex {
                throw LarderError(
                    .formatMismatch, "\(path) is damaged; the index beside it is there and was not changed",
                    remedy: .rebuildIndex, path: path)
            }
            throw LarderError(
                .formatMismatch,
                "\(path) is not the format file of a Larder store: choose another directory. If this is a store whose file was damaged",
                remedy: .rebuildIndex, path: path)
        }
        guard version <= Self.newestVersion else {
            throw LarderError(
                .formatMismatch,
                "\(path) says format \(version), newer than format \(Self.newestVersion) that this version of Larder "
                    + "knows: upgrade Larder, or use another directory; nothing was changed",
                path: path)
        }
        self.version = version
        storeID = String(lines[2].dropFirst(6))
    }

    private static func isStoreID(_ text: Substring) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    /// True if the text is that of a newer format: not damage.
    static func isNewer(_ contents: String) -> Bool {
        let lines = contents.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count > 1, lines[0] == magic, lines[1].hasPrefix("format ") else { return false }
        return Int(lines[1].dropFirst(7)).map { $0 > newestVersion } ?? false
    }

    /// Makes sure that only code that knows a feature opens the store from now on. Call it under the writer lock,
    /// before the index has anything of it.
    static func require(_ feature: Feature, in root: Directory) throws {
        let bytes = try FileSystem.contents(Layout.format, in: root, limit: 256) ?? []
        let current = try FormatFile(
            contents: String(decoding: bytes, as: UTF8.self), path: root.path(of: Layout.format), hasIndex: true)
        guard current.version < feature.rawValue else { return }
        try Creation.replace(FormatFile(version: feature.rawValue, storeID: current.storeID), in: root)
    }

    private init(version: Int, storeID: String) {
        self.version = version
        self.storeID = storeID
    }
}
