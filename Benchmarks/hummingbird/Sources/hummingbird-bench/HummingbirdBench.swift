import Foundation
import Hummingbird
import Larder
import LarderHummingbird
import Logging

/// Each route twice: as it is, and under `/cached`.
@main
enum HummingbirdBench {
    struct Item: Codable {
        var id: Int
        var name: String
        var price: Double
        var tags: [String]
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[2]) else {
            FileHandle.standardError.write(Data("usage: hummingbird-bench STORE PORT\n".utf8))
            exit(64)
        }
        let store = try Store(at: arguments[1], Configuration(budget: Budget(bytes: .megabytes(500))))
        let cache = try ResponseCache(store: store, origin: "http://bench.example")
        let router = Router()
        add(router.group("plain"))
        add(router.group("cached").add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(3_600))))
        var logger = Logger(label: "bench")
        logger.logLevel = .error
        let app = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)), logger: logger)
        try await app.runService()
    }

    /// A line of text; a list of 100 items as JSON; the same after 5 ms, as from a database.
    static func add(_ group: RouterGroup<BasicRequestContext>) {
        group.get("text") { _, _ in "hello" }
        group.get("list") { _, _ in try list() }
        group.get("slow") { _, _ in
            try await Task.sleep(for: .milliseconds(5))
            return try list()
        }
    }

    static func list() throws -> Response {
        let items = (0..<100).map { number in
            Item(
                id: number, name: "item number \(number)", price: Double(number) * 1.5, tags: ["a", "b", "c\(number)"])
        }
        let bytes = ByteBuffer(bytes: try JSONEncoder().encode(items))
        return Response(status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: bytes))
    }
}
