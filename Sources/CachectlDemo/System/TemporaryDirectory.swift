import CachectlCore
import SystemPackage

/// A new directory in `$TMPDIR` or `/tmp`.
struct TemporaryDirectory {
    /// Its path.
    let path: FilePath

    /// Creates the directory. mkdtemp(3)
    init(_ purpose: String) throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        let template = FilePath(parent).appending("cachectl-\(purpose)-XXXXXX")
        var bytes = template.platformBytes.map { CChar(bitPattern: $0) } + [0]
        guard mkdtemp(&bytes) != nil else { throw CommandError.system("mkdtemp", template, .cannotCreate) }
        path = FilePath(platformBytes: bytes.dropLast().map { UInt8(bitPattern: $0) })
    }

    /// Removes the directory and its content. Links are removed, not followed.
    func remove() { Self.removeTree(path) }

    private static func removeTree(_ path: FilePath) {
        if let stream = path.withPlatformString({ opendir($0) }) {
            var names: [FilePath] = []
            while let entry = readdir(stream) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
                if name != [46], name != [46, 46] { names.append(FilePath(platformBytes: name)) }
            }
            closedir(stream)
            for name in names {
                let child = path.appending(name.components)
                if child.withPlatformString({ unlink($0) }) != 0 { removeTree(child) }
            }
        }
        _ = path.withPlatformString { rmdir($0) }
    }
}
