import Hummingbird
import HummingbirdTesting
import Larder
import LarderHummingbird
import Logging

/// Counts the calls of the handler.
actor Calls {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}

// A server on a port of this machine: the handler is called for the first request, and not for the second.
let store = try Store(at: "store")
let cache = try ResponseCache(store: store, origin: "https://example.org")
let persist = LarderPersistDriver(store)
let calls = Calls()
let router = Router()
router.add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
router.get("page") { _, _ in "call \(await calls.next())" }
var logger = Logger(label: "consumer")
logger.logLevel = .error
let app = Application(router: router, services: [persist], logger: logger)
try await app.test(.live) { client in
    for _ in 1...2 {
        let text = String(buffer: try await client.execute(uri: "/page", method: .get).body)
        guard text == "call 1" else { fatalError(text) }
        await cache.drain()
    }
}
try await persist.create(key: "session", value: "ada")
guard try await persist.get(key: "session", as: String.self) == "ada" else { fatalError("no session") }
try store.close()
print("one call for two requests")
