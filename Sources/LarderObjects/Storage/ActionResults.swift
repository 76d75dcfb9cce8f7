import BuildMessages
import Foundation
import Larder
import LarderHTTP
import SwiftProtobuf

/// Results of actions (`ActionResult` of the Remote Execution API) and the blobs that they name.
package enum ActionResults {
    /// The most of a result, in bytes: what gRPC's clients take in one message.
    package static let limit = 4 << 20
    /// The most of a directory tree, or of all trees of one result, that is read, in bytes.
    static let treeLimit = 32 << 20
    /// Files and directories that one result may have below its directories.
    static let largestTree = 1 << 18
    /// A larger size of a blob is a mistake.
    private static let largestBlob: Int64 = 1 << 50

    /// What is wrong with a result.
    package struct Invalid: Error {
        package let reason: String
    }

    /// A result with other outputs is stored for the action, and stays.
    package struct OtherStays: Error {
        package static let reason = "the first result of this action stays until it is removed"
    }

    /// What a value under `/ac/` is.
    package enum Value {
        case result(Build_Bazel_Remote_Execution_V2_ActionResult)
        /// An entry of ccache, which uses the same paths for its own format: it begins with 0xCCAC. No protobuf message
        /// does: that would be the end of a group.
        case opaque
    }

    package static func parse(_ bytes: [UInt8]) throws(Invalid) -> Value {
        if bytes.starts(with: [0xCC, 0xAC]) { return .opaque }
        guard bytes.withUnsafeBytes({ MessageShape.result.fits($0) }) else {
            throw Invalid(reason: "the value is not an ActionResult of the Remote Execution API")
        }
        do {
            return .result(try Build_Bazel_Remote_Execution_V2_ActionResult(serializedBytes: bytes))
        } catch {
            throw Invalid(reason: "the value is not an ActionResult of the Remote Execution API")
        }
    }

    /// The blobs that a result names, and those that name more: trees, and directories.
    package static func blobs(
        of result: Build_Bazel_Remote_Execution_V2_ActionResult
    ) throws(Invalid) -> (blobs: [Digest], trees: [Digest], roots: [Digest]) {
        var (blobs, trees, roots): ([Digest], [Digest], [Digest]) = ([], [], [])
        for file in result.outputFiles where file.contents.isEmpty || file.hasDigest {
            blobs.append(try digest(file.digest))
        }
        for directory in result.outputDirectories {
            if directory.hasTreeDigest { trees.append(try digest(directory.treeDigest)) }
            if directory.hasRootDirectoryDigest { roots.append(try digest(directory.rootDirectoryDigest)) }
            guard directory.hasTreeDigest || directory.hasRootDirectoryDigest else {
                throw Invalid(reason: "a directory of the result has no digest")
            }
        }
        if result.hasStdoutDigest { blobs.append(try digest(result.stdoutDigest)) }
        if result.hasStderrDigest { blobs.append(try digest(result.stderrDigest)) }
        return (blobs, trees, roots)
    }

    /// The blobs that a tree names.
    package static func files(of tree: [UInt8]) throws(Invalid) -> Set<Digest> {
        let message: Build_Bazel_Remote_Execution_V2_Tree
        guard tree.withUnsafeBytes({ MessageShape.tree.fits($0) }) else {
            throw Invalid(reason: "a directory tree of the result is not a Tree of the Remote Execution API")
        }
        do {
            message = try Build_Bazel_Remote_Execution_V2_Tree(serializedBytes: tree)
        } catch {
            throw Invalid(reason: "a directory tree of the result is not a Tree of the Remote Execution API")
        }
        var result: Set<Digest> = []
        func add(_ directory: Build_Bazel_Remote_Execution_V2_Directory) throws(Invalid) {
            for file in directory.files { result.insert(try digest(file.digest)) }
        }
        try add(message.root)
        for directory in message.children { try add(directory) }
        return result
    }

    package static func digest(_ message: Build_Bazel_Remote_Execution_V2_Digest) throws(Invalid) -> Digest {
        guard let digest = Digest(hexadecimal: message.hash), message.hash.utf8.count == 64 else {
            throw Invalid(reason: "a digest of the result is not 64 hexadecimal digits")
        }
        guard (0...largestBlob).contains(message.sizeBytes), digest != ObjectStore.empty || message.sizeBytes == 0
        else {
            throw Invalid(reason: "a blob of the result has \(message.sizeBytes) bytes")
        }
        return digest
    }
}

extension ObjectStore {
    /// The result of an action, if all that it names is there. That is then promised to stay.
    package func result(_ key: Key) async throws -> (object: StoredObject, value: ActionResults.Value)? {
        guard let object = try await object(key), object.body.length.bytes <= Int64(ActionResults.limit) else {
            return nil
        }
        let value = try ActionResults.parse(try await object.body.bytes())
        if case .result(let result) = value, try await !isComplete(result) {
            counters.incompleteResults.add(1, ordering: .relaxed)
            return nil
        }
        return (object, value)
    }

    /// Stores the result of an action.
    ///
    /// The first one stays for as long as its blobs are there: a client that may write cannot give others something
    /// else for an action that was built before. One with the same outputs changes nothing.
    /// - Throws: ``ActionResults/Invalid``, ``ActionResults/OtherStays``, `LarderError`.
    package func put(result bytes: [UInt8], for key: Key, _ options: PutOptions) async throws {
        let value = try ActionResults.parse(bytes)
        if case .result(let result) = value { _ = try ActionResults.blobs(of: result) }
        // The last time around another was faster again and again, or what is there cannot be read.
        for attempt in 0... {
            var batch = WriteBatch()
            if replacesResults || attempt == 8 {
                batch.put(bytes, for: key, options)
            } else if let first = try await store.get(key) {
                if let kept = try await inUse(first) {
                    if case .result(let result) = value, result.hasSameOutputs(as: kept) { return }
                    throw ActionResults.OtherStays()
                }
                batch.put(bytes, replacing: first, options)
            } else {
                batch.put(bytes, for: key, options, unlessPresent: true)
            }
            let results = try await store.write(batch)
            try results.throwIfFailed()
            if case .stored? = results.first { return }
            // Another was faster: it may be the first one now.
            try Task.checkCancellation()
        }
    }

    /// A result that can be used: another may not take its place. What failed may succeed later, and an entry of ccache
    /// may be a list that grows.
    private func inUse(_ entry: Entry) async throws -> Build_Bazel_Remote_Execution_V2_ActionResult? {
        guard entry.body.length.bytes <= Int64(ActionResults.limit),
            case .result(let result)? = try? ActionResults.parse(try await entry.body.bytes()), result.exitCode == 0
        else { return nil }
        return try await isComplete(result) ? result : nil
    }

    /// Whether all that a result names is there. It is then promised to stay.
    func isComplete(_ result: Build_Bazel_Remote_Execution_V2_ActionResult) async throws -> Bool {
        guard case (let blobs, let trees, let roots)? = try? ActionResults.blobs(of: result) else { return false }
        var needed = Set(blobs)
        var room = Int64(ActionResults.treeLimit)
        for tree in Set(trees) {
            try Task.checkCancellation()
            guard let body = try await blob(tree)?.body else { return false }
            guard body.length.bytes <= room else {
                noteUnusable(tree, "the trees of a result are too large to be read")
                return false
            }
            guard let files = try await files(of: tree, body) else { return false }
            room -= body.length.bytes
            needed.insert(tree)
            needed.formUnion(files)
        }
        guard let below = try await content(below: roots, room) else { return false }
        needed.formUnion(below)
        needed.remove(Self.empty)
        guard !needed.isEmpty else { return true }
        let list = Array(needed)
        guard try await store.missing(of: list, lengths: [:]).isEmpty else { return false }
        // One may have gone before its lease was written.
        return try await promises.promise(list) ? try await store.missing(of: list, lengths: [:]).isEmpty : true
    }

    /// The blobs that a tree names; nil, and a line in the log, if it cannot be read.
    private func files(of tree: Digest, _ body: Body) async throws -> Set<Digest>? {
        try await decoding(body.length.bytes) {
            let bytes = try await body.bytes()
            do throws(ActionResults.Invalid) {
                return try ActionResults.files(of: bytes)
            } catch {
                noteUnusable(tree, error.reason)
                return nil
            }
        }
    }

    /// The directories below some, themselves included, and the files in them.
    /// - Parameter room: bytes of directories that are read, at most.
    /// - Returns: nil if one is not there, is not a directory, or there are too many.
    private func content(below roots: [Digest], _ room: Int64) async throws -> Set<Digest>? {
        var found = Set(roots)
        var waiting = Array(found)
        var room = room
        while let next = waiting.popLast() {
            if next == Self.empty { continue }
            try Task.checkCancellation()
            guard let body = try await blob(next)?.body, body.length.bytes <= room else { return nil }
            room -= body.length.bytes
            guard let directory = try await directory(next, body) else { return nil }
            for file in directory.files {
                guard let digest = try? ActionResults.digest(file.digest) else { return nil }
                found.insert(digest)
            }
            for child in directory.directories {
                guard let digest = try? ActionResults.digest(child.digest) else { return nil }
                if found.insert(digest).inserted { waiting.append(digest) }
            }
            guard found.count <= ActionResults.largestTree else { return nil }
        }
        return found
    }
}

extension ObjectStore {
    /// A directory; nil, and a line in the log, if it cannot be read.
    private func directory(
        _ digest: Digest, _ body: Body
    ) async throws -> Build_Bazel_Remote_Execution_V2_Directory? {
        try await decoding(body.length.bytes) {
            let bytes = try await body.bytes()
            guard bytes.withUnsafeBytes({ MessageShape.directory.fits($0) }),
                let directory = try? Build_Bazel_Remote_Execution_V2_Directory(serializedBytes: bytes)
            else {
                noteUnusable(digest, "it is not a Directory of the Remote Execution API")
                return nil
            }
            return directory
        }
    }
}

extension Build_Bazel_Remote_Execution_V2_ActionResult {
    /// Whether both name the same outputs. When and where they were built does not count (the fields that are not known
    /// here have that, and times of modification), nor what the tools printed, nor whether content is in the result.
    fileprivate func hasSameOutputs(as other: Self) -> Bool { outputs == other.outputs }

    private var outputs: Self {
        var plain = Self()
        plain.exitCode = exitCode
        plain.outputFiles = outputFiles.map { file in
            var file = file
            if file.hasDigest { file.contents = Data() }
            file.nodeProperties.clearMtime()
            file.unknownFields = UnknownStorage()
            return file
        }
        plain.outputDirectories = outputDirectories.map { directory in
            var directory = directory
            directory.unknownFields = UnknownStorage()
            return directory
        }
        func withoutTime(_ link: Build_Bazel_Remote_Execution_V2_OutputSymlink)
            -> Build_Bazel_Remote_Execution_V2_OutputSymlink
        {
            var link = link
            link.nodeProperties.clearMtime()
            link.unknownFields = UnknownStorage()
            return link
        }
        plain.outputSymlinks = outputSymlinks.map(withoutTime)
        plain.outputFileSymlinks = outputFileSymlinks.map(withoutTime)
        plain.outputDirectorySymlinks = outputDirectorySymlinks.map(withoutTime)
        return plain
    }
}
