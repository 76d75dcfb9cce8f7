import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird

// The Swift blocks of docs/hummingbird.md and of the articles of LarderHummingbird: see Examples.swift.

enum HummingbirdExamples {
    static func inFiveLines(store: Store) throws {
        let cache = try ResponseCache(store: store, origin: "https://example.org")
        let router = Router()
        router.add(middleware: ResponseCacheMiddleware(cache))
        router.get("articles/:id") { _, context -> Response in
            let id = try context.parameters.require("id")
            var response = Response(status: .ok, body: .init(byteBuffer: ByteBuffer(string: "article \(id)")))
            response.headers[.cacheControl] = "public, max-age=60"
            response.cacheTags = ["articles", "article-\(id)"]
            return response
        }
    }

    static func purging(cache: ResponseCache) async throws {
        try await cache.purge(tag: "article-7")
        try await cache.purge("/articles/7")
    }

    static func keys(router: Router<BasicRequestContext>, cache: ResponseCache) {
        var key = KeyPolicy()
        key.ignoredParameters = ["utm_source"]
        key.addedFields = [.acceptLanguage]
        router.group("news").add(
            middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(30), key: key, tags: ["news"]))
    }

    static func persist(store: Store, router: Router<BasicRequestContext>) async throws {
        let persist = LarderPersistDriver(store)
        try await persist.create(key: "session", value: "ada", expires: .seconds(3_600))
        let app = Application(router: router, services: [persist])
        _ = app
    }
}
