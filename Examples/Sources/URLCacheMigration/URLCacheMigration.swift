import Foundation
import Larder
import Recipes

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Reads from Larder first and from the old `URLCache` second, and moves what it finds there. A `URLCache` cannot be
/// listed, so entries move when they are asked for; after some weeks the old cache can be removed.
struct Responses {
    let store: Store
    let old: URLCache?

    struct Head: Codable {
        var status: Int
        var fields: [String: String]
    }

    func response(for request: URLRequest) throws -> (HTTPURLResponse, Data)? {
        guard let url = request.url else { return nil }
        if let entry = try store.get(Key(url.absoluteString)) {
            let head = try JSONDecoder().decode(Head.self, from: Data(entry.metadata))
            guard
                let response = HTTPURLResponse(
                    url: url, statusCode: head.status, httpVersion: "HTTP/1.1", headerFields: head.fields)
            else { return nil }
            return (response, Data(try entry.body.bytes()))
        }
        guard let cached = old?.cachedResponse(for: request), let response = cached.response as? HTTPURLResponse else {
            return nil
        }
        try keep(response, cached.data)
        old?.removeCachedResponse(for: request)
        return (response, cached.data)
    }

    /// `URLCache` says nothing when it does not store a response. This throws, for instance `tooLarge`.
    func keep(_ response: HTTPURLResponse, _ body: Data) throws {
        guard let url = response.url else { return }
        let fields = response.allHeaderFields.reduce(into: [String: String]()) { $0["\($1.key)"] = "\($1.value)" }
        let head = Head(status: response.statusCode, fields: fields)
        let seconds = fields["Cache-Control"].flatMap { $0.firstMatch(of: /max-age=(\d+)/) }.flatMap { Int($0.1) }
        let options = PutOptions(
            lifetime: .duration(.seconds(seconds ?? 0)), metadata: try Array(JSONEncoder().encode(head)))
        try store.put(body, for: Key(url.absoluteString), options)
    }
}

@main
enum URLCacheMigration {
    static func main() throws {
        let old = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        let request = URLRequest(url: URL(string: "https://example.com/news")!)
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1",
            headerFields: ["Cache-Control": "max-age=600", "Content-Type": "text/plain"])!
        old.storeCachedResponse(CachedURLResponse(response: response, data: Data("news".utf8)), for: request)

        let store = try Store(at: "responses", Configuration(budget: Budget(bytes: .megabytes(50))))
        let responses = Responses(store: store, old: old)
        try expect(responses.response(for: request)?.1 == Data("news".utf8))
        print("moved:", try store.keys())
        expect(old.cachedResponse(for: request) == nil)

        let again = try Responses(store: store, old: nil).response(for: request)
        print("from Larder:", again?.0.statusCode ?? 0, again?.0.value(forHTTPHeaderField: "Content-Type") ?? "")
        expect(again?.1 == Data("news".utf8) && again?.0.statusCode == 200)
        try store.close()
    }
}
