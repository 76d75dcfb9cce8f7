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

    @Test func otherSchemesAndOtherResponses() throws {
        try withStore { store in
            let cache = StoreURLCache(store)
            let head = URLResponse(
                url: URL(string: "ftp://a/file")!, mimeType: "text/x", expectedContentLength: 3,
                textEncodingName: "latin1")
            cache.storeCachedResponse(
                CachedURLResponse(response: head, data: Data([1, 2, 3])), for: request("ftp://a/file"))
            let found = try #require(cache.cachedResponse(for: request("ftp://a/file")))
            #expect(found.data == Data([1, 2, 3]) && found.response.mimeType == "text/x")
            #expect(found.response.textEncodingName == "latin1" && found.response.expectedContentLength == 3)
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
            // No body, and a response whose URL has no host.
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
