import Larder
import LarderHTTP
import LarderNIOTransport
import Recipes
import TestOrigin

@main
enum HTTPClient {
    static func main() async throws {
        // Stands for a web server: one page that is fresh for a minute, and one that is to be asked for each time.
        let origin = try await TestOrigin.start()
        origin.script("/fresh", .ok("fresh").header("Cache-Control", "max-age=60"))
        origin.script("/asked") { request in
            OriginResource("asked", etag: "\"1\"", fields: [.init("Cache-Control", "no-cache")]).answer(request)
        }

        let store = try Store(at: "http", Configuration(budget: Budget(bytes: .megabytes(100))))
        let transport = NIOTransport()
        let cache = HTTPCache(store: store, transport: transport)

        // Ten requests at once share one request to the server.
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    let answer = try await cache.fetch(origin.url + "/fresh")
                    return try await String(decoding: answer.body.bytes(), as: UTF8.self)
                }
            }
            for try await text in group { expect(text == "fresh") }
        }
        print("ten answers, \(origin.requests(for: "/fresh").count) request")
        expect(origin.requests(for: "/fresh").count == 1)

        // A page with `no-cache` is asked for each time; a 304 costs no body.
        for expected in [FetchResponse.Source.network, .revalidated] {
            let answer = try await cache.fetch(origin.url + "/asked")
            let text = try await String(decoding: answer.body.bytes(), as: UTF8.self)
            print(answer.source, "origin:", answer.originStatus ?? 0)
            expect(answer.source == expected && text == "asked")
        }

        // The server fails: the stored response serves, however stale, if the caller says so.
        await origin.stop()
        let answer = try await cache.fetch(
            origin.url + "/asked", FetchOptions(policy: [.askIfModified, .fallbackToCacheIfLoadFails]))
        print(answer.source, answer.originError.map { "\($0.code)" } ?? "")
        expect(answer.source == .fallback)

        await cache.drain()
        await transport.close()
        try await store.close()
    }
}
