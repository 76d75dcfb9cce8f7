import Foundation
import Larder
import LarderURLSession
import Synchronization
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The `URLCache` over a store.
struct StoreURLCacheTests {
    private func response(
        _ url: String, _ text: String, status: Int = 200, fields: [String: String] = [:],
        policy: URLCache.StoragePolicy = .allowed, info: [AnyHashable: Any]? = nil
    ) -> CachedURLResponse {
        let head = HTTPURLResponse(
            url: URL(string: url)!, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)!
        return CachedURLResponse(response: head, data: Data(text.utf8), userInfo: info, storagePolicy: policy)
    }

    private func request(_ url: String, method: String = "GET") -> URLRequest {
        var request = URLRequest(url: URL(string: url)!)
        request.httpMethod = method
        return request
    }

    @Test func whatIsStoredComesBack() throws {
        try withStore { store in
            let cache = StoreURLCache(store)
            let fields = [
                "Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip", "Content-Length": "9",
            ]
            let stored = response("http://a.example/x", "decoded text", fields: fields, info: ["key": "value"])
            cache.storeCachedResponse(stored, for: request("http://a.example/x"))
            let found = try #require(cache.cachedResponse(for: request("HTTP://A.example:80/x#part")))
            let head = try #require(found.response as? HTTPURLResponse)
            #expect(Answer(found.data, head) == Answer(stored.data, stored.response))
            #expect(head.mimeType == "text/plain" && head.textEncodingName == "utf-8")
            #expect(head.expectedContentLength == stored.response.expectedContentLength)
            #expect(found.userInfo?["key"] as? String == "value" && found.storagePolicy == .allowed)
            #expect(cache.cachedResponse(for: request("http://a.example/x", method: "HEAD")) == nil)
            #expect(cache.cachedResponse(for: request("http://a.example/y")) == nil)
            #expect(cache.cachedResponse(for: request("https://a.example/x")) == nil)
        }
    }

    @Test func itLastsLongerThanTheObject() throws {
        try withStore { store in
            StoreURLCache(store).storeCachedResponse(response("http://a/", "x"), for: request("http://a/"))
            #expect(StoreURLCache(store).cachedResponse(for: request("http://a/"))?.data == Data("x".utf8))
        }
    }

    private final class NoURL: HTTPURLResponse, @unchecked Sendable {
        // SAFETY: has no state of its own.
        override var url: URL? { nil }
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var code: URLError.Code
        var url = "http://a/file"
        var answer: @Sendable (URL) -> URLResponse
        var data = Data([1, 2, 3])

        static func http(_ status: Int, _ fields: [String: String] = [:]) -> @Sendable (URL) -> URLResponse {
            { HTTPURLResponse(url: $0, statusCode: status, httpVersion: nil, headerFields: fields)! }
        }
    }

    static let refused = [
        Refused(testDescription: "a file", code: .unsupportedURL, url: "file:///etc/passwd", answer: Refused.http(200)),
        Refused(testDescription: "data", code: .unsupportedURL, url: "data:,x", answer: Refused.http(200)),
        Refused(testDescription: "no scheme", code: .unsupportedURL, url: "file", answer: Refused.http(200)),
        Refused(testDescription: "without a URL", code: .badURL) {
            NoURL(url: $0, statusCode: 200, httpVersion: nil, headerFields: nil)!
        },
        Refused(testDescription: "not of HTTP", code: .badServerResponse) {
            URLResponse(url: $0, mimeType: "text/x", expectedContentLength: 3, textEncodingName: nil)
        },
        Refused(testDescription: "a part", code: .badServerResponse, answer: Refused.http(206)),
        Refused(testDescription: "not modified", code: .badServerResponse, answer: Refused.http(304)),
        Refused(
            testDescription: "cut short", code: .badServerResponse, answer: Refused.http(200, ["Content-Length": "4"])),
        Refused(
            testDescription: "without its body", code: .badServerResponse,
            answer: Refused.http(200, ["Content-Length": "4"]), data: Data()),
    ]

    @Test(arguments: refused) func whatIsNoWholeResponseIsNotStored(test: Refused) throws {
        try withStore { store in
            let errors = Mutex<[URLError.Code?]>([])
            let cache = StoreURLCache(store) { error in errors.withLock { $0.append((error as? URLError)?.code) } }
            let request = request(test.url)
            cache.storeCachedResponse(
                CachedURLResponse(response: test.answer(request.url!), data: test.data), for: request)
            #expect(errors.withLock { $0 } == [test.code])
            #expect(cache.cachedResponse(for: request) == nil)
            cache.removeCachedResponse(for: request)
            #expect(errors.withLock { $0.count } == 1)
            let statistics = try store.statistics()
            #expect(statistics.entryCount == 0)
        }
    }

    @Test func emptyBodiesAreStored() throws {
        try withStore { store in
            let cache = StoreURLCache(store) { Issue.record($0) }
            for (number, (method, status)) in [("GET", 200), ("GET", 204), ("GET", 404), ("HEAD", 200)].enumerated() {
                let url = "http://a/\(number)"
                let fields = status == 200 && method == "GET" ? ["Content-Length": "0"] : ["Content-Length": "7"]
                let stored = response(url, "", status: status, fields: status == 404 ? [:] : fields)
                cache.storeCachedResponse(stored, for: request(url, method: method))
                let found = try #require(cache.cachedResponse(for: request(url, method: method)))
                #expect(found.data.isEmpty && (found.response as? HTTPURLResponse)?.statusCode == status)
            }
        }
    }

    /// On Linux a session reads its `urlCache`, and writes none.
    @Test func aSessionReadsIt() async throws {
        try await withStore { store in
            let cache = StoreURLCache(store)
            cache.storeCachedResponse(
                response("http://127.0.0.1:9/a", "stored", fields: ["Content-Type": "text/plain"]),
                for: request("http://127.0.0.1:9/a"))
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            configuration.requestCachePolicy = .returnCacheDataDontLoad
            let session = URLSession(configuration: configuration)
            let answer = try await session.answer(request("http://127.0.0.1:9/a"))
            #expect(answer.status == 200 && answer.text == "stored")
        }
    }

    @Test func policies() throws {
        try withStore { store in
            let cache = StoreURLCache(store)
            cache.storeCachedResponse(response("http://a/", "x", policy: .notAllowed), for: request("http://a/"))
            #expect(cache.cachedResponse(for: request("http://a/")) == nil)
            let inMemory = response("http://a/", "x", policy: .allowedInMemoryOnly)
            cache.storeCachedResponse(inMemory, for: request("http://a/"))
            #expect(cache.cachedResponse(for: request("http://a/"))?.storagePolicy == .allowedInMemoryOnly)
            #expect(cache.currentMemoryUsage > 0)
            let statistics = try store.statistics()
            #expect(statistics.memoryEntryCount == 1 && statistics.entryCount == 0)
        }
    }

    @Test func removing() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "another's")
            let cache = StoreURLCache(store)
            let urls = (1...4).map { "http://a/\($0)" }
            for url in urls.prefix(2) { cache.storeCachedResponse(response(url, "x"), for: request(url)) }
            clock.advance(by: .seconds(10))
            let between = Date(timeIntervalSince1970: clock.now().seconds)
            clock.advance(by: .seconds(10))
            for url in urls.dropFirst(2) { cache.storeCachedResponse(response(url, "x"), for: request(url)) }
            func left() -> [String] { urls.filter { cache.cachedResponse(for: request($0)) != nil } }
            cache.removeCachedResponse(for: request(urls[0]))
            #expect(left() == Array(urls[1...]))
            cache.removeCachedResponses(since: between)
            #expect(left() == [urls[1]])
            cache.removeAllCachedResponses()
            #expect(left().isEmpty)
            #expect(try store.get("another's") != nil)
        }
    }

    @Test func capacitiesAreTheBudget() throws {
        try withStore { store in
            let cache = StoreURLCache(store)
            #expect(cache.diskCapacity == .max)
            cache.diskCapacity = 10 << 20
            let budget = try store.statistics().budget
            #expect(budget.bytes == .mebibytes(10))
            #expect(cache.diskCapacity == 10 << 20)
            cache.diskCapacity = 1
            #expect(cache.diskCapacity == Int(Budget.minimumBytes.bytes))
            let before = cache.currentDiskUsage
            let allocated = try store.statistics().allocatedBytes
            #expect(before > 0 && Int64(before) == allocated.bytes)
            cache.storeCachedResponse(response("http://a/", "x"), for: request("http://a/"))
            cache.diskCapacity = 0
            #expect(cache.diskCapacity == 0 && cache.cachedResponse(for: request("http://a/")) == nil)
            cache.storeCachedResponse(response("http://a/", "x"), for: request("http://a/"))
            #expect(cache.cachedResponse(for: request("http://a/")) == nil)
            cache.diskCapacity = 2 << 20
            cache.storeCachedResponse(response("http://a/", "x"), for: request("http://a/"))
            #expect(cache.cachedResponse(for: request("http://a/")) != nil)
            #expect(cache.memoryCapacity == 0)
        }
    }

    @Test func ofTasks() async throws {
        try await withStore { store in
            let cache = StoreURLCache(store)
            let task = URLSession(configuration: .ephemeral).dataTask(with: request("http://a/"))
            cache.storeCachedResponse(response("http://a/", "x"), for: task)
            let data = await withCheckedContinuation { continuation in
                cache.getCachedResponse(for: task) { continuation.resume(returning: $0?.data) }
            }
            #expect(data == Data("x".utf8))
            cache.removeCachedResponse(for: task)
            #expect(cache.cachedResponse(for: request("http://a/")) == nil)
        }
    }

    @Test func badInputIsToldAndStoresNothing() throws {
        let errors = Mutex<[String]>([])
        let store = try withStore { store in
            let cache = StoreURLCache(store) { error in
                errors.withLock { $0.append((error as? LarderError).map { "\($0.code)" } ?? "\(type(of: error))") }
            }
            var nowhere = request("http://a/")
            nowhere.url = nil
            cache.storeCachedResponse(response("http://a/", "x"), for: nowhere)
            #expect(cache.cachedResponse(for: nowhere) == nil)
            cache.removeCachedResponse(for: nowhere)
            #expect(errors.withLock { $0 } == ["URLError", "URLError", "URLError"])
            errors.withLock { $0 = [] }
            // A URL without a host.
            cache.storeCachedResponse(response("http:", ""), for: request("http:"))
            #expect(cache.cachedResponse(for: request("http:"))?.data == Data())
            // A key and metadata over the limits of the store.
            let long = "http://a/" + String(repeating: "x", count: 70_000)
            cache.storeCachedResponse(response(long, "x"), for: request(long))
            let fields = ["X-Long": String(repeating: "x", count: 2 << 20)]
            cache.storeCachedResponse(response("http://b/", "x", fields: fields), for: request("http://b/"))
            #expect(errors.withLock { $0.count } == 2)
            #expect(cache.cachedResponse(for: request("http://b/")) == nil)
            // What cannot be a property list is left out.
            let odd = response("http://c/", "x", info: ["object": NSObject()])
            cache.storeCachedResponse(odd, for: request("http://c/"))
            #expect(cache.cachedResponse(for: request("http://c/"))?.userInfo == nil)
            // An entry that is not a response.
            try store.put([1], for: "urlcache GET http://d/")
            #expect(cache.cachedResponse(for: request("http://d/")) == nil)
            return store
        }
        let closed = StoreURLCache(store) { error in
            errors.withLock { $0 = [(error as? LarderError).map { "\($0.code)" } ?? "\(error)"] }
        }
        closed.storeCachedResponse(response("http://a/", "x"), for: request("http://a/"))
        #expect(errors.withLock { $0 } == ["closed"])
        #expect(closed.cachedResponse(for: request("http://a/")) == nil && closed.diskCapacity == 0)
        #expect(closed.currentDiskUsage == 0)
    }
}
