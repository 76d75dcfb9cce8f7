import Larder
import LarderMetrics
import Metrics
import MetricsTestKit
import TestSupport
import Testing

/// What swift-metrics gets of a store is what its statistics say.
@Suite struct StoreMetricsTests {
    @Test func countersAreReportedOnceEach() async throws {
        try await withStore { store in
            let metrics = TestMetrics()
            let reporter = StoreMetrics(store, dimensions: [("store", "a")], factory: metrics)
            try await store.put(body(100), for: "k")
            for _ in 0..<3 { _ = try await store.get("k") }
            _ = try await store.get("none")
            try await reporter.report()
            let own = [("store", "a")]
            func total(_ name: String, _ more: [(String, String)] = []) throws -> Int64 {
                try metrics.expectCounter("larder_store_" + name, own + more).totalValue
            }
            #expect(try total("hits_total") == 3)
            #expect(try total("misses_total") == 1)
            #expect(try total("read_bytes_total") == 300)
            #expect(try total("puts_total") == 1)
            #expect(try total("displaced_total", [("reason", "expired")]) == 0)
            #expect(try total("failures_total", [("work", "commit")]) == 0)
            #expect(try total("put_seconds_count") == 1)
            #expect(try total("put_seconds_bucket", [("le", "+Inf")]) == 1)
            #expect(try metrics.expectGauge("larder_store_entries", own).lastValue == 1)
            #expect(try metrics.expectGauge("larder_store_failing", own + [("work", "commit")]).lastValue == 0)
            _ = try await store.get("k")
            try await store.remove("k")
            try await reporter.report()
            try await reporter.report()
            #expect(try total("hits_total") == 4)
            #expect(try total("removed_total") == 1)
            #expect(try metrics.expectGauge("larder_store_entries", own).lastValue == 0)
        }
    }

    /// What a process reports that was started later includes what was counted before.
    @Test func countersOfTheStoreGoOnInAnotherReporter() async throws {
        try await withDirectory { path in
            let first = try Store(at: path, .testing())
            try await first.put([1], for: "k")
            _ = try await first.get("k")
            try finish(first)
            let metrics = TestMetrics()
            let second = try Store(at: path, .testing { $0.isReadOnly = true })
            try await StoreMetrics(second, prefix: "cache.", factory: metrics).report()
            #expect(try metrics.expectCounter("cache.hits_total").totalValue == 1)
            try await second.close()
        }
    }

    @Test func reportingEndsWithTheStore() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let metrics = TestMetrics()
            let reporter = StoreMetrics(store, factory: metrics)
            let reporting = Task { try await reporter.report(every: .microseconds(100)) }
            try await waitWhile { metrics.recorders.isEmpty }
            try finish(store)
            try await reporting.value
        }
    }

    @Test func aCancelledReporterEnds() async throws {
        try await withStore { store in
            let reporter = StoreMetrics(store, factory: TestMetrics())
            let reporting = Task { try await reporter.report(every: .seconds(3600)) }
            reporting.cancel()
            await #expect(throws: CancellationError.self) { try await reporting.value }
        }
    }
}
