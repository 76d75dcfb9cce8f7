import Larder
import SwiftProtobuf

@testable import BuildMessages
@testable import LarderObjects

/// What decodes bytes of build tools, and what has to hold of the results. `tools/fuzz` and `FuzzTests` feed it.
enum ObjectDecoders {
    /// Something that does not hold.
    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    private static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw Finding(description: what()) }
    }

    /// The target of a request, and the name of an instance.
    static func path(_ bytes: [UInt8]) throws {
        let target = String(decoding: bytes, as: UTF8.self)
        if let path = try? ObjectPath(target) {
            let segments = path.text.split(separator: "/", omittingEmptySubsequences: false)
            try require(path.text.utf8.first == UInt8(ascii: "/"), "a path that does not begin with a slash")
            try require(!segments.contains(".."), "a path with '..' in it")
            try require(!path.text.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "a path with a control character in it")
            switch path.name {
            case .file(let key), .result(let key), .record(let key), .artifact(let key):
                // Keys of blobs have no slash before them.
                try require(key.bytes.first == UInt8(ascii: "/"), "a key that could be a blob's")
            default: break
            }
        }
        let digest = Digest.of([UInt8]())
        if let path = try? ObjectPath(instance: target, "ac", digest) {
            guard case .result(let key) = path.name else { throw Finding(description: "not a result") }
            // Empty segments do not count.
            let segments = target.utf8.split(separator: UInt8(ascii: "/")).map { "/" + String(Substring($0)) }
            let expected = segments.joined() + "/ac/" + digest.hexadecimal
            try require(key == Key(expected), "an instance whose results have another path over HTTP")
        }
    }

    /// The result of an action, and a directory tree.
    static func result(_ bytes: [UInt8]) throws {
        if case .result(let result)? = try? ActionResults.parse(bytes) {
            let count = result.outputFiles.count + result.outputDirectories.count + result.outputSymlinks.count
            try require(count <= 64 + bytes.count / 5, "\(count) parts in \(bytes.count) bytes")
            let blobs = try? ActionResults.blobs(of: result)
            let again: [UInt8] = try result.serializedBytes()
            let other = try ActionResults.parse(again)
            guard case .result(let read) = other else { throw Finding(description: "a result becomes another thing") }
            try require((try? ActionResults.blobs(of: read))?.blobs == blobs?.blobs, "a result names other blobs")
        }
        _ = try? ActionResults.files(of: bytes)
    }
}
