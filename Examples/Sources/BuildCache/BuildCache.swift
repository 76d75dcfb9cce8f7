import Foundation
import Larder
import Recipes

/// Results of build actions: outputs by their SHA-256, and for each action the list of its outputs.
struct Results: Sendable {
    let store: Store
    /// For as long as a build runs nothing that it was promised is displaced.
    let leaseTime = Duration.seconds(3_600)

    /// Stores the outputs of an action, those that are not there, and then the action: all in one commit.
    func record(_ action: String, outputs: [[UInt8]]) throws -> (uploaded: Int, digests: [Digest]) {
        let digests = outputs.map { Digest.of($0) }
        let missing = Set(try store.missing(of: digests))
        var batch = WriteBatch()
        for (output, digest) in zip(outputs, digests) where missing.contains(digest) {
            batch.put(output, for: Key(digest), digest: digest)
        }
        for digest in digests { batch.lease(digest: digest, for: leaseTime) }
        batch.put(digests.flatMap(\.bytes), for: Key("action:" + action))
        try store.write(batch).throwIfFailed()
        return (missing.count, digests)
    }

    /// The outputs of an action; nil unless all of them are there, and stay there for the build.
    func outputs(of action: String) throws -> [Body]? {
        guard let entry = try store.get(Key("action:" + action)) else { return nil }
        let bytes = try entry.body.bytes()
        let digests = stride(from: 0, to: bytes.count, by: Digest.length).compactMap {
            Digest(bytes: Array(bytes[$0..<min($0 + Digest.length, bytes.count)]))
        }
        // First the leases, so that nothing is displaced between the look and the use.
        var batch = WriteBatch()
        for digest in digests { batch.lease(digest: digest, for: leaseTime) }
        try store.write(batch)
        let bodies = try store.bodies(digests: digests)
        return bodies.contains { $0 == nil } ? nil : bodies.compactMap(\.self)
    }
}

@main
enum BuildCache {
    static func main() throws {
        let store = try Store(at: "build", Configuration(budget: Budget(bytes: .gigabytes(10))))
        let results = Results(store: store)
        let object = [UInt8](repeating: 1, count: 400_000)

        let first = try results.record("compile a.swift", outputs: [object, Array("log 1".utf8)])
        let second = try results.record("compile b.swift", outputs: [object, Array("log 2".utf8)])
        print("uploaded \(first.uploaded) outputs, then \(second.uploaded)")
        expect(first.uploaded == 2 && second.uploaded == 1)

        // What a client asks first: which of a thousand digests would have to be uploaded?
        let asked = (0..<1_000).map { Digest.of(Array("unknown \($0)".utf8)) } + first.digests
        let missing = try store.missing(of: asked)
        print("\(missing.count) of \(asked.count) digests are missing")
        expect(missing.count == 1_000)

        try expect(results.outputs(of: "compile b.swift")?.map(\.length) == [400_000, 5])
        // An action whose outputs are not all there is a miss.
        try store.remove(.content(first.digests[1]))
        try expect(results.outputs(of: "compile a.swift") == nil)
        try store.close()
    }
}
