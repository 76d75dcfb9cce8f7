import Hummingbird
import HummingbirdTesting
import Larder
import LarderHummingbird
import Recipes

/// Counts how often the page is made.
actor Press {
    private(set) var count = 0

    func page(_ id: String) -> String {
        count += 1
        return "article \(id), edition \(count)"
    }
}

@main
enum CachedServer {
    static func main() async throws {
        let store = try Store(at: "server", Configuration(budget: Budget(bytes: .megabytes(100))))
        let cache = try ResponseCache(store: store, origin: "https://example.org")
        let persist = LarderPersistDriver(store)
        let press = Press()

        let router = Router()
        router.group("articles").add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
            .get(":id") { _, context -> Response in
                let id = try context.parameters.require("id")
                let page = await press.page(id)
                var response = Response(status: .ok, body: .init(byteBuffer: ByteBuffer(string: page)))
                response.cacheTags = ["article-\(id)"]
                return response
            }
        router.put("visits") { _, _ -> String in
            let count = (try await persist.get(key: "visits", as: Int.self) ?? 0) + 1
            try await persist.set(key: "visits", value: count)
            return "\(count)"
        }

        // A server on a port of this machine; in a program of your own: try await app.runService().
        let app = Application(router: router, services: [persist])
        try await app.test(.live) { client in
            for expected in ["article 7, edition 1", "article 7, edition 1"] {
                let response = try await client.execute(uri: "/articles/7", method: .get)
                print(String(buffer: response.body))
                expect(String(buffer: response.body) == expected)
            }
            try await cache.purge(tag: "article-7")
            let response = try await client.execute(uri: "/articles/7", method: .get)
            print(String(buffer: response.body))
            expect(String(buffer: response.body) == "article 7, edition 2")

            let visits = try await client.execute(uri: "/visits", method: .put)
            expect(String(buffer: visits.body) == "1")
        }

        await cache.drain()
        try await store.close()
    }
}
