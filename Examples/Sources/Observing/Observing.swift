import Larder
import LarderMetrics
import Logging
import MetricsTestKit
import Recipes

@main
enum Observing {
    static func main() async throws {
        // The handler is the program's own; the levels decide what reaches it, and can change at any time.
        let levels = LogLevels(.warning)
        var configuration = Configuration(budget: Budget(bytes: .mebibytes(8)))
        configuration.logger = levels.logger(Logger(label: "app.cache"))
        let store = try Store(at: "store", configuration)

        // Events come in their order to each reader, whatever the log says.
        let events = store.events(buffering: 4_096)
        let watching = Task {
            var counts: [String: Int] = [:]
            for await event in events {
                switch event {
                case .stored: counts["stored", default: 0] += 1
                case .displaced(_, _, let reason): counts["displaced, \(reason)", default: 0] += 1
                // A reader that is too slow misses events, and hears how many.
                case .missed(let count): counts["missed", default: 0] += count
                default: break
                }
            }
            return counts
        }
        for number in 0..<500 { try await store.put(page(number), for: Key("page \(number)")) }
        _ = try await store.get("page 499")
        _ = try await store.get("page 0")

        // A real program gives swift-metrics a factory once, with `MetricsSystem.bootstrap`.
        let factory = TestMetrics()
        let metrics = StoreMetrics(store, dimensions: [("store", "pages")], factory: factory)
        // In a service: Task { try await metrics.report(every: .seconds(15)) }
        try await metrics.report()
        let entries = try factory.expectGauge("larder_store_entries", [("store", "pages")]).lastValue ?? 0
        print("metrics: \(Int(entries)) entries")

        // While something is looked into, one category says more. No restart, no other logger.
        levels["displacement"] = .debug
        for number in 500..<600 { try await store.put(page(number), for: Key("page \(number)")) }
        levels["displacement"] = nil

        try await store.close()
        let counts = await watching.value
        print("events:", counts.map { "\($0.value) \($0.key)" }.sorted())
        expect(counts["stored"] == 600 && counts["displaced, leastRecentlyUsed"] != nil && Int(entries) < 500)
    }

    static func page(_ number: Int) -> [UInt8] { Array("page \(number)".utf8) + [UInt8](repeating: 0, count: 40_000) }
}
