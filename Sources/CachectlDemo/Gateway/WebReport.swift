import CachectlCore
import Larder

/// The results of the second half of the demo.
struct WebReport {
    let figures: WebDemo.Figures
    let originRequests: Int
    let notModified: Int
    let statistics: Statistics
    let elapsed: Duration

    /// True if no request failed, no body was wrong, and the store kept its budget.
    var isFine: Bool {
        figures.wrong == 0 && figures.failed == 0
            && statistics.allocatedBytes.bytes <= statistics.budget.bytes.bytes
    }

    /// The results as a table.
    var text: String {
        let times = figures.hitTimes.sorted()
        func quantile(_ part: Double) -> String {
            guard !times.isEmpty else { return "-" }
            let value = times[min(times.count - 1, Int(Double(times.count) * part))]
            return "\((Double(value) * 1_000).rounded() / 1_000) ms"
        }
        var table = Table([.left, .left])
        table.add(
            "requests",
            "\(Render.count(figures.requests)), "
                + "\(Render.count(Int64(Double(figures.requests) / max(elapsed.inSeconds, 0.001)))) per second, "
                + "\(figures.failed) failed")
        table.add("hit ratio", Render.percent(figures.hits, of: figures.requests))
        table.add(
            "bytes served", "\(ByteCount(figures.bytes)), each body compared with the file, \(figures.wrong) wrong")
        table.add(
            "origin", "\(Render.count(originRequests)) requests, \(Render.count(notModified)) responses with 304"
        )
        table.add("hit latency", "median \(quantile(0.5)), 99th percentile \(quantile(0.99))")
        table.add(
            "in the store",
            "\(Render.count(statistics.entryCount)) entries, \(statistics.allocatedBytes) of \(statistics.budget.bytes)"
        )
        return table.text
    }
}

/// `demo --json`: the second half.
struct WebJSON: Encodable {
    let seconds: Double
    let requests: Int
    let failed: Int
    let hits: Int
    let hitRatio: Double
    let bytes: Int64
    let wrongBodies: Int
    let originRequests: Int
    let originNotModified: Int
    let allocatedBytes: Int64

    init(_ report: WebReport) {
        seconds = report.elapsed.inSeconds
        requests = report.figures.requests
        failed = report.figures.failed
        hits = report.figures.hits
        hitRatio = requests == 0 ? 0 : Double(hits) / Double(requests)
        bytes = report.figures.bytes
        wrongBodies = report.figures.wrong
        originRequests = report.originRequests
        originNotModified = report.notModified
        allocatedBytes = report.statistics.allocatedBytes.bytes
    }
}
