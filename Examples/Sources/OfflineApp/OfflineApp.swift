import Larder
import LarderHTTP
import LarderNIOTransport
import Recipes
import TestOrigin

/// A reader of guides that works on a plane.
struct Guides: Sendable {
    let store: Store
    let cache: HTTPCache

    init(_ store: Store, _ transport: NIOTransport) {
        self.store = store
        var configuration = HTTPCacheConfiguration()
        // Offline, a guide may be this old.
        configuration.caching.disconnectedStaleLimitSeconds = 90 * 86_400
        cache = HTTPCache(store: store, transport: transport, configuration: configuration)
    }

    /// Downloads everything of a guide, and keeps it whatever else is stored later.
    func save(_ guide: String, _ urls: [String]) async throws {
        try await withThrowingTaskGroup { group in
            for url in urls {
                group.addTask {
                    let options = FetchOptions(policy: .askIfModified, tags: [guide], priority: .low)
                    _ = try await cache.fetch(url, options).body.bytes()
                }
            }
            try await group.waitForAll()
        }
        try await store.perform { try $0.flush(.durable) }
        try await store.perform { try $0.pin(tag: guide) }
    }

    func page(_ url: String) async throws -> (text: String, source: FetchResponse.Source) {
        let answer = try await cache.fetch(url, FetchOptions(policy: .fallbackToCacheIfLoadFails))
        return (try await String(decoding: answer.body.bytes(), as: UTF8.self), answer.source)
    }
}

@main
enum OfflineApp {
    static func main() async throws {
        let origin = try await TestOrigin.start { request in
            .ok("page \(request.path)").header("Cache-Control", "max-age=0").header("ETag", "\"1\"")
        }
        let store = try Store(at: "guides", Configuration(budget: Budget(bytes: .megabytes(100))))
        let transport = NIOTransport()
        let guides = Guides(store, transport)

        let urls = (1...5).map { origin.url + "/iceland/\($0)" }
        try await guides.save("iceland", urls)
        let saved = try await store.perform { try $0.keys(.tag("iceland")).count }
        print("saved \(saved) pages; pinned: \(try store.pinnedTags())")

        // The plane takes off.
        await origin.stop()
        guides.cache.isOffline = true
        for url in urls {
            let page = try await guides.page(url)
            expect(page.source == .stale && page.text.hasPrefix("page /iceland/"))
        }
        do {
            _ = try await guides.page(origin.url + "/norway/1")
            expect(false, "a page that was never saved was found")
        } catch let error as FetchError where error.code == .notCached {
            print("not saved:", error.message)
        }

        // The guide is deleted: its pages may go.
        try await store.perform { try $0.unpin(tag: "iceland") }
        let removed = try await guides.cache.purge(tag: "iceland")
        print("deleted \(removed) pages")
        expect(removed == 5)

        await guides.cache.drain()
        await transport.close()
        try await store.close()
    }
}
