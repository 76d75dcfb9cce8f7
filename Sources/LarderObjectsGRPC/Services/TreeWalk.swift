import BuildMessages
import GRPCCore
import Larder
import LarderObjects
import SwiftProtobuf

/// The directories below a root, breadth first, each once, in pages.
struct TreeWalk: Sendable {
    /// Directories that are remembered. A larger tree is refused.
    private static let limit = 1 << 20
    private static let largestPage = 1_000

    private let objects: ObjectStore
    private let pageSize: Int
    private var waiting: [Digest]
    /// Of ``waiting``, the next.
    private var position = 0
    private var seen: Set<Digest>
    /// Directories of earlier pages.
    private var skipped: Int
    private var token: Int

    /// - Parameters:
    ///   - count: directories that the client has already: the token of a page.
    ///   - pageSize: as the client wants it; 0 and less for any.
    init(objects: ObjectStore, root: Digest, skipping count: Int, pageSize: Int) {
        self.objects = objects
        self.pageSize = pageSize > 0 ? min(pageSize, Self.largestPage) : Self.largestPage
        waiting = [root]
        seen = [root]
        skipped = max(0, count)
        token = max(0, count)
    }

    /// What is not there below the root is left out.
    ///
    /// - Returns: nil after the last page.
    /// - Throws: `RPCError`: `notFound` for a root that is not there, `failedPrecondition` for what is not a directory.
    mutating func nextPage() async throws -> Build_Bazel_Remote_Execution_V2_GetTreeResponse? {
        guard position < waiting.count else { return nil }
        var page = Build_Bazel_Remote_Execution_V2_GetTreeResponse()
        var length = 0
        while position < waiting.count, page.directories.count < pageSize {
            guard let (directory, count) = try await directory(waiting[position]) else {
                if position == 0 { throw RPCError(code: .notFound, message: "There is no such directory.") }
                position += 1
                continue
            }
            guard page.directories.isEmpty || length + count <= Limits.batch else { break }
            position += 1
            for child in directory.directories { try add(child) }
            if skipped > 0 {
                skipped -= 1
                continue
            }
            length += count
            page.directories.append(directory)
        }
        token += page.directories.count
        if position < waiting.count { page.nextPageToken = String(token) }
        return page
    }

    private mutating func add(_ node: Build_Bazel_Remote_Execution_V2_DirectoryNode) throws {
        guard let digest = try? ActionResults.digest(node.digest) else {
            throw RPCError(code: .failedPrecondition, message: "A directory of the tree has no valid digest.")
        }
        guard digest != ObjectStore.empty, seen.insert(digest).inserted else { return }
        guard seen.count <= Self.limit else {
            throw RPCError(code: .resourceExhausted, message: "The tree has more than \(Self.limit) directories.")
        }
        waiting.append(digest)
    }

    private func directory(_ digest: Digest) async throws -> (Build_Bazel_Remote_Execution_V2_Directory, Int)? {
        if digest == ObjectStore.empty { return (.init(), 0) }
        guard let body = try await objects.blob(digest)?.body else { return nil }
        guard body.length.bytes <= Int64(Limits.batch), let bytes = try? await body.bytes(),
            bytes.withUnsafeBytes({ MessageShape.directory.fits($0) }),
            let directory = try? Build_Bazel_Remote_Execution_V2_Directory(serializedBytes: bytes)
        else { throw RPCError(code: .failedPrecondition, message: "An entry of the tree is not a directory.") }
        return (directory, Int(body.length.bytes))
    }
}
