import SystemPackage

/// What a program without a cache engine does: a file for each body in one of 256 directories, written under a
/// temporary name and renamed. Paths are made before the clock starts.
final class PlainFilesPeer: Peer {
    private let prefix: String

    init(_ path: FilePath) throws {
        prefix = path.string + "/"
        for shard in 0..<256 { try FileTree.makeDirectory(path.appending("\(shard)")) }
    }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        // Spread evenly over the directories in any order, as a hash of the key would be.
        let shard = Generator.mix(UInt64(index)) & 255
        name.path = Array((prefix + "\(shard)/\(index)").utf8CString)
        name.text = prefix + "\(shard)/\(index).new"
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws { try write(body, name, isSynced: false) }

    func putDurable(_ body: [UInt8], _ name: Name) throws { try write(body, name, isSynced: true) }

    private func write(_ body: [UInt8], _ name: Name, isSynced: Bool) throws {
        let file = name.text.withCString { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        guard file >= 0 else { throw BenchError.system("open", name.text) }
        defer { RawFile.closeFile(file) }
        var done = 0
        while done < body.count {
            let count = body.withUnsafeBytes { RawFile.writeBytes(file, $0.baseAddress! + done, body.count - done) }
            guard count > 0 else { throw BenchError.system("write", name.text) }
            done += count
        }
        if isSynced, fsync(file) != 0 { throw BenchError.system("fsync", name.text) }
        if name.text.withCString({ rename($0, name.path) }) != 0 { throw BenchError.system("rename", name.text) }
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        let file = open(name.path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw BenchError.system("open", name.text)
        }
        defer { RawFile.closeFile(file) }
        let count = pread(file, scratch.buffer.baseAddress, scratch.buffer.count, 0)
        if count < 0 { throw BenchError.system("pread", name.text) }
        return count
    }

    func remove(_ name: Name) throws {
        if unlink(name.path) != 0, errno != ENOENT { throw BenchError.system("unlink", name.text) }
    }
}
