import CachectlCore
import Larder
import SystemPackage

/// The files that the demo stores.
struct Corpus: Sendable {
    /// The directory.
    let root: FilePath
    let files: [FileTreeWalk.File]
    /// The sum of the lengths of the files.
    let bytes: Int64
    private let base: [UInt8]

    /// Finds the files of `root`. Skips empty files, because they take no space.
    init(_ root: FilePath) throws {
        var walk = FileTreeWalk(root)
        var files: [FileTreeWalk.File] = []
        try walk.run { file in
            if files.count & 1023 == 0 { try Interruption.check() }
            if file.length > 0 { files.append(file) }
        }
        guard !files.isEmpty else {
            throw CommandError(.noInput, "\(root) has no files: use another directory")
        }
        self.root = root
        base = KeyPath.base(directory: root.platformBytes)
        self.files = files
        bytes = files.reduce(0) { $0 + $1.length }
    }

    /// The key of a file.
    func key(_ index: Int) -> Key {
        KeyPath.key(base: base, path: files[index].path)
    }

    /// The path of a file in URLs, relative to the directory.
    func path(_ index: Int) -> String {
        "/" + String(decoding: KeyPath.key(base: [], path: files[index].path).bytes, as: UTF8.self)
    }

    /// The content of a file; nil if it is missing or unreadable.
    func contents(_ index: Int) -> [UInt8]? {
        try? FileInput.bytes(of: FileTreeWalk(root).location(of: files[index].path))
    }
}
