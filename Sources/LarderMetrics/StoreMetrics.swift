import Larder
import Metrics
import Locks

/// Reports what is known of a store to swift-metrics: its size, and what all processes have done with it.
///
///     let metrics = StoreMetrics(store, dimensions: [("store", "images")])
///     Task { try await metrics.report(every: .seconds(15)) }
///
/// Only one process of those that share a store should report it: the counters are those of all of them. Names, units
/// and dimensions are listed in `docs/metrics.md`. Safe from any thread.
public final class StoreMetrics: Sendable {
    private let store: Store
    private let instruments: Mutex<Instruments>

    /// - Parameters:
    ///   - store: what is reported; held until this object is released.
    ///   - prefix: the beginning of every name. Default: `larder_store_`.
    ///   - dimensions: added to each metric, to tell stores apart. Default: none.
    ///   - factory: where the metrics go. Default: that of `MetricsSystem`.
    public init(
        _ store: Store, prefix: String = "larder_store_", dimensions: [(String, String)] = [],
        factory: any MetricsFactory = MetricsSystem.factory
    ) {
        self.store = store
        instruments = Mutex(Instruments(prefix: prefix, dimensions: dimensions, factory: factory))
    }

    /// Reports now. The first report adds what the counters have counted so far.
    ///
    /// Commits first what is pending, as `Store.statistics()` does.
    /// - Throws: `closed`, `io`, and what else `Store.statistics()` throws.
    public func report() async throws {
        let statistics = try await store.performShort { [store] in try store.statistics() }
        instruments.withLock { instruments in
            instruments.report(statistics)
            instruments.report(statistics.counters)
        }
    }

    /// Reports at once, and again and again until the task is cancelled or the store is closed.
    /// - Parameter interval: between two reports.
    /// - Throws: `CancellationError`, and what `report()` throws except `closed`.
    public func report(every interval: Duration) async throws {
        while true {
            do {
                try await report()
            } catch let error as LarderError where error.code == .closed {
                return
            }
            try await Task.sleep(for: interval)
        }
    }
}
