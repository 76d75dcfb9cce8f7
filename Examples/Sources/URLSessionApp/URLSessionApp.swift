import Foundation
import Larder
import LarderHTTP
import LarderURLSession
import Recipes
import TestOrigin

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@main
enum URLSessionApp {
    static func main() async throws {
        // Stands for a web server: a page that is fresh for a minute behind a redirect, and one that must be asked for.
        let origin = try await TestOrigin.start()
        origin.script("/news", .redirect(to: "/news/today", status: 301).header("Cache-Control", "max-age=60"))
        origin.script("/news/today", .ok("today").header("Cache-Control", "max-age=60"))
        origin.script("/asked") { request in
            OriginResource("asked", etag: "\"1\"", fields: [.init("Cache-Control", "no-cache")]).answer(request)
        }

        let store = try Store(at: "session", Configuration(budget: Budget(bytes: .megabytes(50))))
        let configuration = URLSessionConfiguration.default
        let transport = URLSessionTransport(configuration)
        let cache = HTTPCache(store: store, transport: transport)
        let caching = configuration.useCache(cache)
        let session = URLSession(configuration: configuration)

        // From here on the program is one that uses URLSession, and nothing else.
        for _ in 1...3 {
            let (data, response) = try await session.data(from: URL(string: origin.url + "/news")!)
            expect(data == Data("today".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
        }
        print("three loads, \(origin.requests.count) requests: a redirect and its target")
        expect(origin.requests.count == 2)

        // A 304 costs no body, and looks like what was stored.
        for _ in 1...2 {
            let (data, response) = try await session.data(from: URL(string: origin.url + "/asked")!)
            expect(data == Data("asked".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
        }
        print("asked for \(origin.requests(for: "/asked").count) times, sent once")
        expect(origin.requests(for: "/asked").last?["If-None-Match"] == "\"1\"")

        // The policies of URLRequest are those of the cache.
        await origin.stop()
        var offline = URLRequest(url: URL(string: origin.url + "/asked")!)
        offline.cachePolicy = .returnCacheDataDontLoad
        let (data, _) = try await session.data(for: offline)
        expect(data == Data("asked".utf8))
        offline.url = URL(string: origin.url + "/never")
        do {
            _ = try await session.data(for: offline)
            expect(false)
        } catch let error as URLError {
            print("not stored:", error.code == .resourceUnavailable)
            expect(error.code == .resourceUnavailable)
        }

        // A download through the same cache.
        let file = URL(fileURLWithPath: "today.txt")
        try await caching.download(for: URLRequest(url: URL(string: origin.url + "/news")!), to: file)
        try expect(String(contentsOf: file, encoding: .utf8) == "today")

        session.finishTasksAndInvalidate()
        await cache.drain()
        transport.close()
        try await store.close()
    }
}
