import CachectlCore
import SystemPackage

/// A cache without an engine: one file per body, written under a temporary name and renamed.
struct PlainFiles {
    private let directory: FilePath
    // Created before the clock starts, as are the keys of the store.
    private let paths: [FilePath]

    init(_ directory: FilePath, count: Int) {
        self.directory = directory
        paths = (0..<count).map { directory.appending("\($0 & 255)").appending("\($0)") }
    }

    /// Creates the directory, and 256 below it, as file caches do.
    func prepare() throws {
        for path in [directory] + (0..<256).map({ directory.appending("\($0)") })
        where path.withPlatformString({ mkdir($0, 0o700) }) != 0 && errno != EEXIST {
            throw CommandError.system("mkdir", path, .cannotCreate)
        }
    }

    func write(_ body: [UInt8], _ index: Int) throws {
        let path = paths[index]
        let temporary = FilePath(path.string + ".new")
        let file = try FileDescriptor.open(
            temporary, .writeOnly, options: [.create, .truncate], permissions: FilePermissions(rawValue: 0o600))
        _ = try file.closeAfter { try body.withUnsafeBytes { try file.writeAll($0) } }
        if temporary.withPlatformString({ from in path.withPlatformString { rename(from, $0) } }) != 0 {
            throw CommandError.system("rename to", path)
        }
    }

    func read(_ index: Int, _ length: Int) throws -> [UInt8] {
        let file = try FileDescriptor.open(paths[index], .readOnly)
        return try file.closeAfter {
            try [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
                var done = 0
                while done < length {
                    let space = UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(buffer)[done..<length])
                    let count = try file.read(into: space)
                    if count == 0 { break }
                    done += count
                }
                initialized = done
            }
        }
    }

    func exists(_ index: Int) -> Bool {
        var status = stat()
        return paths[index].withPlatformString { stat($0, &status) } == 0
    }

    func remove(_ index: Int) { _ = paths[index].withPlatformString { unlink($0) } }
}
