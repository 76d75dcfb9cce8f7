import Foundation
import Larder
import LarderHTTP
import LarderURLSession

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// A session that may not load: there is no network in this test.
let store = try Store(at: "store")
let configuration = URLSessionConfiguration.ephemeral
let transport = URLSessionTransport(configuration)
let cache = HTTPCache(store: store, transport: transport)
configuration.useCache(cache)
var request = URLRequest(url: URL(string: "https://example.org/")!)
request.cachePolicy = .returnCacheDataDontLoad
var code: URLError.Code?
do {
    _ = try await URLSession(configuration: configuration).data(for: request)
} catch let error as URLError {
    code = error.code
}
guard code == .resourceUnavailable else { fatalError("the session did not ask the cache: \(code as Any)") }

let responses = StoreURLCache(store)
let response = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: nil, headerFields: nil)!
responses.storeCachedResponse(CachedURLResponse(response: response, data: Data([1])), for: request)
guard responses.cachedResponse(for: request)?.data == Data([1]) else { fatalError("the response was not stored") }
await cache.drain()
transport.close()
try store.close()
print("a session that asked its cache")
