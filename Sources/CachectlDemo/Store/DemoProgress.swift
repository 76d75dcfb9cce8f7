import CachectlCore
import Larder

/// The progress of the demo: on a terminal a line that is updated, elsewhere a new line every two seconds.
final class DemoProgress {
    private let isQuiet: Bool
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var shown: ContinuousClock.Instant
    private var lastWidth = 0

    init(isQuiet: Bool) {
        self.isQuiet = isQuiet
        start = clock.now
        shown = start
    }

    /// The time since the start.
    var elapsed: Duration { clock.now - start }

    /// Shows the figures of the store, if it is time for an update.
    func update(_ counters: DemoCounters, _ statistics: () throws -> Statistics) {
        show(statistics) { Self.line($0, counters.snapshot, $1) }
    }

    /// Shows the figures of the gateway, if it is time for an update.
    func update(_ demo: WebDemo, _ statistics: () throws -> Statistics) {
        show(statistics) { seconds, statistics in
            let figures = demo.snapshot
            return "\(seconds) s  requests \(Render.count(figures.requests))  hits "
                + "\(Render.percent(figures.hits, of: figures.requests))  to origin "
                + "\(Render.count(demo.origin.requests.load(ordering: .relaxed)))  "
                + "\(statistics.allocatedBytes) of \(statistics.budget.bytes)"
        }
    }

    private func show(_ statistics: () throws -> Statistics, _ line: (Int, Statistics) -> String) {
        guard !isQuiet, clock.now - shown > (Output.isTerminal ? .milliseconds(200) : .seconds(2)),
            let statistics = try? statistics()
        else { return }
        shown = clock.now
        let line = line(Int(elapsed.components.seconds), statistics)
        if Output.isTerminal {
            try? Output.write("\r" + line + String(repeating: " ", count: max(0, lastWidth - line.count)))
            lastWidth = line.count
        } else {
            try? Output.write(line + "\n")
        }
    }

    /// Clears the line.
    func finish() {
        guard lastWidth > 0 else { return }
        try? Output.write("\r" + String(repeating: " ", count: lastWidth) + "\r")
        lastWidth = 0
    }

    private static func line(_ seconds: Int, _ figures: DemoCounters.Snapshot, _ statistics: Statistics) -> String {
        let lookups = figures.hits + figures.misses
        return
            "\(seconds) s  stored \(Render.count(figures.stored))  hits \(Render.percent(figures.hits, of: lookups)) of "
            + "\(Render.count(lookups))  displaced \(Render.count(statistics.displacedCount))  "
            + "\(statistics.allocatedBytes) of \(statistics.budget.bytes)"
    }
}
