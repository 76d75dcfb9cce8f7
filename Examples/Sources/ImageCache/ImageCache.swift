import Foundation
import Larder
import Recipes

/// Images by URL, and the sizes made of them.
struct Images {
    let store: Store

    init(at path: String) throws {
        let budget = Budget(bytes: .megabytes(200), largestEntry: .megabytes(20), freeDiskFloor: .megabytes(100))
        store = try Store(at: path, Configuration(budget: budget))
    }

    /// The image at `url`, downloaded unless it is stored. Nil if the server has none: that is remembered for a minute.
    func image(at url: URL, download: @escaping @Sendable (URL) async throws -> Data?) async throws -> Data? {
        let entry = try await store.value(for: Key(url.absoluteString)) { _ in
            guard let image = try await download(url) else { return .nothing(for: .seconds(60)) }
            return Computed(Array(image), PutOptions(lifetime: .duration(.seconds(7 * 86_400)), tags: [tag(url)]))
        }
        guard let entry else { return nil }
        return try await Data(entry.body.bytes())
    }

    /// The image in another size, made once and kept without a lifetime of its own.
    func thumbnail(of url: URL, width: Int, scale: @escaping @Sendable () async throws -> Data) async throws -> Data {
        let entry = try await store.value(for: Key("\(url.absoluteString)#width=\(width)")) { _ in
            try await Computed(Array(scale()), PutOptions(tags: [tag(url)]))
        }
        return try await Data(entry?.body.bytes() ?? [])
    }

    /// Removes the image and every size of it.
    func forget(_ url: URL) async throws -> Int { try await store.remove(.tag(tag(url))) }

    /// A tag has at most 200 bytes, a URL may have more.
    private func tag(_ url: URL) -> String { "image:" + Digest.of(Array(url.absoluteString.utf8)).hexadecimal }
}

@main
enum ImageCache {
    static func main() async throws {
        let images = try Images(at: "images")
        let server = Server()
        let url = URL(string: "https://example.com/cat.jpeg")!

        // Twenty cells of a list want the same image at once.
        try await withThrowingTaskGroup(of: Data?.self) { group in
            for _ in 0..<20 { group.addTask { try await images.image(at: url) { await server.download($0) } } }
            for try await image in group { expect(image?.count == 90_000) }
        }
        let missing = URL(string: "https://example.com/missing.jpeg")!
        for _ in 0..<3 { _ = try await images.image(at: missing) { await server.download($0) } }
        print("22 requests, \(await server.downloads) downloads")
        await expect(server.downloads == 2)

        let small = try await images.thumbnail(of: url, width: 64) { Data(count: 2_000) }
        let removed = try await images.forget(url)
        print("a thumbnail of \(small.count) bytes; removed \(removed) entries of \(url.lastPathComponent)")
        expect(removed == 2 && small.count == 2_000)
        try await images.store.close()
    }

    /// Stands for the network.
    actor Server {
        private(set) var downloads = 0

        func download(_ url: URL) -> Data? {
            downloads += 1
            return url.lastPathComponent == "cat.jpeg" ? Data(count: 90_000) : nil
        }
    }
}
