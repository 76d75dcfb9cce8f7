import Foundation
import Larder
import LarderHTTP
import LarderURLSession

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Measures what docs/urlsession.md says about speed. Each round runs each way once, so that a change of the machine's
/// speed meets all of them; a figure is the median of the rounds.
///
///     swift run -c release --package-path Benchmarks/URLSession urlsession-bench [ROUNDS]
@main
enum URLSessionBench {
    /// One way to get or store a response, as often as said.
    struct Way {
        var name: String
        var run: (Int) async throws -> Void
    }

    static func main() async throws {
        let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 15
        let directory = NSTemporaryDirectory() + "urlsession-bench-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let store = try Store(at: directory + "/store", Configuration(budget: Budget(bytes: .megabytes(200))))
        for (name, count) in [("1 KiB", 1 << 10), ("64 KiB", 64 << 10)] {
            try await loads(name, count, rounds, store)
            try await caches(name, count, rounds, store, directory)
        }
        try await store.close()
    }

    // MARK: Loading

    static func loads(_ name: String, _ count: Int, _ rounds: Int, _ store: Store) async throws {
        let url = "http://127.0.0.1:\(LocalServer.start(["/a": count]))/a"
        let request = URLRequest(url: URL(string: url)!)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        let network = URLSession(configuration: configuration)
        let transport = URLSessionTransport(configuration)
        let cache = HTTPCache(store: store, transport: transport)
        configuration.useCache(cache)
        let session = URLSession(configuration: configuration)
        func load(_ session: URLSession) -> (Int) async throws -> Void {
            { times in
                for _ in 0..<times {
                    let (data, _) = try await session.data(for: request)
                    precondition(data.count == count)
                }
            }
        }
        try await measure(
            "load, \(name)", rounds, 200,
            [
                Way(name: "network through URLSession", run: load(network)),
                Way(name: "hit through URLSession", run: load(session)),
                Way(name: "hit through HTTPCache") { times in
                    for _ in 0..<times {
                        let body = try await cache.fetch(url).body.bytes()
                        precondition(body.count == count)
                    }
                },
            ])
        await cache.drain()
        transport.close()
    }

    // MARK: A URLCache

    static func caches(_ name: String, _ count: Int, _ rounds: Int, _ store: Store, _ directory: String) async throws {
        let path = directory + "/foundation-\(count)"
        #if canImport(FoundationNetworking)
            let foundation = URLCache(memoryCapacity: 0, diskCapacity: 200 << 20, diskPath: path)
        #else
            let foundation = URLCache(memoryCapacity: 0, diskCapacity: 200 << 20, directory: URL(fileURLWithPath: path))
        #endif
        let inMemory = URLCache(memoryCapacity: 200 << 20, diskCapacity: 0, diskPath: nil)
        let ours = StoreURLCache(store) { fatalError("\($0)") }
        let fields = [
            "Content-Type": "text/plain", "Content-Length": "\(count)", "Cache-Control": "max-age=3600",
            "Date": "Tue, 15 Nov 2033 08:12:31 GMT",
        ]
        let requests = (0..<30).map { URLRequest(url: URL(string: "http://example.org/\(count)/\($0)")!) }
        let data = Data(repeating: 0x78, count: count)
        func storing(_ cache: URLCache) -> (Int) async throws -> Void {
            { times in
                for number in 0..<times {
                    let request = requests[number % requests.count]
                    let response = HTTPURLResponse(
                        url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)!
                    cache.storeCachedResponse(CachedURLResponse(response: response, data: data), for: request)
                }
            }
        }
        func read(_ cache: URLCache) -> (Int) async throws -> Void {
            { times in
                for number in 0..<times {
                    let found = cache.cachedResponse(for: requests[number % requests.count])
                    precondition(found?.data.count == count, "a response is missing")
                }
            }
        }
        try await measure(
            "storeCachedResponse, \(name)", rounds, 30,
            [
                Way(name: "URLCache on disk", run: storing(foundation)),
                Way(name: "URLCache in memory", run: storing(inMemory)),
                Way(name: "StoreURLCache", run: storing(ours)),
            ])
        try await measure(
            "cachedResponse, \(name)", rounds, 300,
            [
                Way(name: "URLCache on disk", run: read(foundation)),
                Way(name: "URLCache in memory", run: read(inMemory)),
                Way(name: "StoreURLCache", run: read(ours)),
            ])
    }

    // MARK: Rounds

    static func measure(_ title: String, _ rounds: Int, _ times: Int, _ ways: [Way]) async throws {
        for way in ways { try await way.run(times) }
        var results = ways.map { _ in [Double]() }
        for _ in 0..<rounds {
            for (number, way) in ways.enumerated() {
                let start = ContinuousClock.now
                try await way.run(times)
                let passed = ContinuousClock.now - start
                let seconds = Double(passed.components.seconds) + Double(passed.components.attoseconds) * 1e-18
                results[number].append(seconds / Double(times) * 1e6)
            }
        }
        let medians = results.map { $0.sorted()[rounds / 2] }
        for (way, median) in zip(ways, medians) {
            let ratio = medians[0] / median
            print(
                "\(title): \(way.name): \(String(format: "%.1f", median)) us, "
                    + "\(String(format: "%.2f", ratio)) x '\(ways[0].name)'")
        }
    }
}
