import Foundation
import Larder
import Synchronization
import SystemPackage

/// A directory cache modelled on Nuke's `DataCache`: one directory, a file for each key, named by the key's digest;
/// puts wait in memory and are written together; a sweep over the whole directory removes the least recently used
/// files, down to 70% of the limit. This is our own code, written from its documentation.
final class DirectoryCachePeer: Peer {
    private struct Staging {
        var bodies: [Int: (Name, [UInt8])] = [:]
        var bytes = 0
        var sinceSweep: Int64 = 0
    }

    private let path: FilePath
    private let limit: Int64?
    private let staging = Mutex(Staging())

    init(_ path: FilePath, _ options: PeerOptions) throws {
        self.path = path
        limit = options.budgetBytes
    }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.text = path.appending(Digest.of(Name.bytes(index)).hexadecimal).string
        name.path = Array(name.text.utf8CString)
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws {
        let isFull = staging.withLock { staging in
            staging.bodies[name.index] = (name, body)
            staging.bytes += body.count
            return staging.bytes > 16 << 20
        }
        if isFull { try settle() }
    }

    func settle() throws {
        let (bodies, written) = staging.withLock { staging in
            defer {
                staging.bodies = [:]
                staging.bytes = 0
            }
            staging.sinceSweep += Int64(staging.bytes)
            return (staging.bodies, staging.sinceSweep)
        }
        for (name, body) in bodies.values {
            try Data(body).write(to: URL(fileURLWithPath: name.text))
        }
        // Its sweep runs by a timer; this one runs when a tenth of the limit has been written.
        if let limit, written > limit / 10 {
            staging.withLock { $0.sinceSweep = 0 }
            sweep(limit)
        }
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        if let staged = staging.withLock({ $0.bodies[name.index]?.1 }) { return staged.count }
        return try? Data(contentsOf: URL(fileURLWithPath: name.text)).count
    }

    func remove(_ name: Name) throws {
        _ = staging.withLock { $0.bodies.removeValue(forKey: name.index) }
        unlink(name.path)
    }

    func close() throws { try settle() }

    private func sweep(_ limit: Int64) {
        let keys: Set<URLResourceKey> = [.contentAccessDateKey, .fileSizeKey]
        let urls =
            (try? FileManager.default.contentsOfDirectory(
                at: URL(fileURLWithPath: path.string), includingPropertiesForKeys: Array(keys))) ?? []
        var files = urls.map { url in
            let values = try? url.resourceValues(forKeys: keys)
            return (url: url, size: values?.fileSize ?? 0, date: values?.contentAccessDate ?? .distantPast)
        }
        var total = files.reduce(0) { $0 + Int64($1.size) }
        guard total > limit else { return }
        files.sort { $0.date < $1.date }
        for file in files where total > limit * 7 / 10 {
            try? FileManager.default.removeItem(at: file.url)
            total -= Int64(file.size)
        }
    }
}
