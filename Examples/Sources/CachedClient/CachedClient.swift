import AsyncHTTPClient
import Larder
import LarderAsyncHTTPClient
import Recipes
import TestOrigin

@main
enum CachedClient {
    static func main() async throws {
        // Stands for a web server: an old address that redirects to a page, which is fresh for a minute.
        let origin = try await TestOrigin.start()
        origin.script("/old", .redirect(to: "/new", status: 308))
        origin.script("/new", .ok("news").header("Cache-Control", "max-age=60"))

        let store = try Store(at: "client", Configuration(budget: Budget(bytes: .megabytes(100))))
        let client = CachingHTTPClient(store: store)  // was: HTTPClient()

        for _ in 0..<3 {
            let response = try await client.execute(
                HTTPClientRequest(url: origin.url + "/old"), timeout: .seconds(30))
            let text = String(buffer: try await response.body.collect(upTo: 1 << 20))
            print(response.status.code, text, response.headers["Cache-Status"])
            expect(text == "news" && response.url?.path == "/new")
        }
        print("the page was sent \(origin.requests(for: "/new").count) time")
        expect(origin.requests(for: "/new").count == 1)

        try await client.shutdown()
        await origin.stop()
        try await store.close()
    }
}
