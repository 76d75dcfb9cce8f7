import NIOCore
import Locks

/// Requests and hits of the last minutes, for the status page.
final class TrafficHistory: Sendable {
    /// What happened between two looks.
    struct Interval: Sendable {
        var requests: UInt64
        var hits: UInt64
    }

    /// Two seconds each, ten minutes in all.
    static let intervalSeconds = 2
    static let capacity = 300

    private struct State {
        var intervals = CircularBuffer<Interval>()
        var last: (requests: UInt64, hits: UInt64)?
        var task: RepeatedTask?
    }

    private let state = Mutex(State())

    func start(on eventLoop: any EventLoop, _ reader: MetricsReader) {
        let period = TimeAmount.seconds(Int64(Self.intervalSeconds))
        let task = eventLoop.scheduleRepeatedAsyncTask(initialDelay: .zero, delay: period) { _ in
            let promise = eventLoop.makePromise(of: Void.self)
            let task = reader.core.tasks.start {
                self.add(await reader.counters())
                promise.succeed()
            }
            if task == nil { promise.fail(CancellationError()) }
            return promise.futureResult
        }
        state.withLock { $0.task = task }
    }

    func stop() { state.withLock { $0.task }?.cancel() }

    var intervals: [Interval] { state.withLock { Array($0.intervals) } }

    /// Takes in the totals.
    func add(_ counters: ServerCounters) {
        let hits = counters.answers[0] + counters.answers[3] + counters.answers[2]
        let total = counters.answers.reduce(0, +)
        state.withLock { state in
            if let last = state.last {
                state.intervals.append(Interval(requests: total - last.requests, hits: hits - last.hits))
                if state.intervals.count > Self.capacity { state.intervals.removeFirst() }
            }
            state.last = (total, hits)
        }
    }
}
