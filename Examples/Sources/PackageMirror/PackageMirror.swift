import Larder
import Recipes

struct Package: Sendable {
    var name: String
    var digest: Digest
    var length: ByteCount
}

struct Mirror: Sendable {
    let store: Store

    /// Downloads what the mirror does not have. A body that is not what the index says is refused.
    func download(_ packages: [Package], _ open: @Sendable (Package) -> AsyncStream<[UInt8]>) async throws -> Int {
        let missing = Set(try await store.perform { try $0.missing(of: packages.map(\.digest)) })
        for package in packages where missing.contains(package.digest) {
            // Written to its place as it arrives: memory stays at one piece.
            let writer = try store.writer(
                for: Key("pool/" + package.name), length: package.length, digest: package.digest)
            try await writer.write(contentsOf: open(package))
            try await writer.commit()
        }
        return missing.count
    }

    /// Makes a release the current one: its packages are kept, those of the last one may be displaced, in one commit.
    func publish(_ release: [Package]) async throws {
        let old = try await store.perform { try $0.keys(.pinned && .prefix("pool/")) }
        let new = release.map { Key("pool/" + $0.name) }
        var batch = WriteBatch()
        for key in Set(old).subtracting(new) { batch.change(key, EntryChange(isPinned: false)) }
        for key in new { batch.change(key, EntryChange(isPinned: true)) }
        let index = release.map { "\($0.name) \($0.digest)\n" }.joined()
        batch.put(index.utf8, for: "index", PutOptions(isPinned: true))
        let results = try await store.write(batch, durability: .durable)
        try results.throwIfFailed()
        expect(results.allSatisfy(\.isSuccess), "a package was removed before it was published")
    }
}

/// Stands for the server that is mirrored.
enum Upstream {
    private static let contents = ["a-1.0": 3_000_000, "b-1.0": 20_000, "b-1.1": 21_000]
        .mapValues { [UInt8](repeating: 7, count: $0) }

    static func package(_ name: String) -> Package {
        let content = contents[name, default: []]
        return Package(name: name, digest: .of(content), length: ByteCount(content.count))
    }

    static func open(_ package: Package) -> AsyncStream<[UInt8]> {
        let content = contents[package.name, default: []]
        return AsyncStream { stream in
            for start in stride(from: 0, to: content.count, by: 65_536) {
                stream.yield(Array(content[start..<min(start + 65_536, content.count)]))
            }
            stream.finish()
        }
    }
}

@main
enum PackageMirror {
    static func main() async throws {
        let mirror = Mirror(store: try Store(at: "mirror", Configuration(budget: Budget(bytes: .gigabytes(5)))))
        let first = ["a-1.0", "b-1.0"].map(Upstream.package)
        let second = ["a-1.0", "b-1.1"].map(Upstream.package)
        var downloads: [Int] = []
        for release in [first, second] {
            downloads.append(try await mirror.download(release, Upstream.open))
            try await mirror.publish(release)
        }
        let kept = try await Set(mirror.store.perform { try $0.keys(.pinned) })
        print("downloads:", downloads, "kept:", kept)
        expect(downloads == [2, 1] && kept == ["index", "pool/a-1.0", "pool/b-1.1"])

        // A download that was tampered with never gets in.
        let wrong = Package(name: "c-1.0", digest: .of(Array("c".utf8)), length: 20_000)
        do {
            _ = try await mirror.download([wrong]) { _ in Upstream.open(Upstream.package("b-1.0")) }
            expect(false, "a body with another digest was stored")
        } catch let error as LarderError where error.code == .digestMismatch {
            print("refused:", error.message)
        }
        try await mirror.store.perform { try $0.export("pool/a-1.0", to: "a-1.0.tar") }
        try await mirror.store.close()
    }
}
