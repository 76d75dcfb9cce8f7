import HTTPTypes
import Larder
import LarderHTTP

/// Answers every request without a network.
struct FixedAnswer: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let fields: HTTPFields = [.cacheControl: "max-age=60", .contentType: "text/plain"]
        return TransportResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: .empty)
    }
}

// A cache in the working directory: the first answer comes from the transport, the second does not.
let store = try Store(at: "store")
let cache = HTTPCache(store: store, transport: FixedAnswer())
var sources: [String] = []
for _ in 1...2 {
    let answer = try await cache.fetch("https://example.org/")
    for try await _ in answer.body {}
    sources.append("\(answer.source)")
}
await cache.drain()
try store.close()
guard sources == ["network", "hit"] else { fatalError("answers came from \(sources)") }
print("fetched from \(sources.joined(separator: ", then "))")
