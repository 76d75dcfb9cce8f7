import Foundation
import Hummingbird
import Larder
import LarderHummingbird
import Logging

extension AdaptersBench {
    private struct Item: Codable {
        var id: Int
        var name: String
        var price: Double
        var tags: [String]
    }

    /// Each route twice: as it is, and under `/cached`.
    static func serve(_ store: Store, port: Int) async throws {
        let cache = try ResponseCache(store: store, origin: "http://bench.example")
        let router = Router()
        add(router.group("plain"))
        add(router.group("cached").add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(3_600))))
        var logger = Logger(label: "bench")
        logger.logLevel = .error
        let app = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)), logger: logger)
        try await app.runService()
        await cache.drain()
    }

    /// A line of text; a list of 100 items as JSON; the same after 1 ms, as from a database; 1 MiB from memory and from
    /// a file.
    private static func add(_ group: RouterGroup<BasicRequestContext>) {
        let large = ByteBuffer(bytes: (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        group.get("text") { _, _ in tagged(ByteBuffer(string: "hello"), "text/plain") }
        group.get("list") { _, _ in tagged(try list(), "application/json") }
        group.get("database") { _, _ in
            try await Task.sleep(for: .milliseconds(1))
            return tagged(try list(), "application/json")
        }
        group.get("large") { _, _ in tagged(large, "application/octet-stream") }
    }

    /// For clients that cache: fresh for an hour, whatever the route says.
    private static func tagged(_ content: ByteBuffer, _ type: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: type, .cacheControl: "max-age=3600"], body: .init(byteBuffer: content))
    }

    private static func list() throws -> ByteBuffer {
        let items = (0..<100).map { number in
            Item(
                id: number, name: "item number \(number)", price: Double(number) * 1.5, tags: ["a", "b", "c\(number)"])
        }
        return ByteBuffer(bytes: try JSONEncoder().encode(items))
    }
}
