import Larder
import NIOCore

/// Gathers what the event loops have counted.
struct MetricsReader: Sendable {
    let workers: [Worker]
    let core: ServerCore
    let history: TrafficHistory

    /// The sum over all event loops. Each is asked on its own thread, so that counting needs no locks.
    static func sum(_ workers: [Worker]) async -> ServerCounters {
        var sum = ServerCounters()
        for worker in workers {
            // An event loop that has stopped counts nothing any more.
            if let counters = try? await worker.eventLoop.submit({ worker.counters }).get() { sum = sum + counters }
        }
        return sum
    }

    func counters() async -> ServerCounters { await Self.sum(workers) }

    /// The store's figures; nil when it is closed or cannot be read.
    func statistics() async -> Statistics? {
        let store = core.service.health.store
        return try? await store.performShort { try store.statistics() }
    }
}
