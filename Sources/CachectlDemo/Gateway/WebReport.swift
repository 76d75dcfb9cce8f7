import CachectlCore
import Larder

/// What the demo's gateway did.
struct WebReport {
    let figures: WebDemo.Figures
    let originRequests: Int
    let notModified: Int
    let statistics: Statistics
    let elapsed: Duration

    /// True if no client got a wrong body or none at all, and the store kept to its budget.
    var isFine: Bool {
        figures.wrong == 0 && figures.failed == 0
            && statistics.allocatedBytes.bytes <= statistics.budget.bytes.bytes
    }

    /// The figures as a table.
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
                + "\(Render.count(Int64(Double(figures.requests) / max(elapsed.inSeconds, 0.001)))) a second, "
                + "\(figures.failed) failed")
        table.add("hit ratio", Render.percent(figures.hits, of: figures.requests))
        table.add(
            "bytes served", "\(ByteCount(figures.bytes)), each body compared with the file, \(figures.wrong) wrong")
        table.add(
            "the origin saw", "\(Render.count(originRequests)) requests, \(Render.count(notModified)) answered with 304"
        )
        table.add("hits took", "\(quantile(0.5)) in the middle, \(quantile(0.99)) at the 99th percentile")
        table.add(
            "in the store",
            "\(Render.count(statistics.entryCount)) entries, \(statistics.allocatedBytes) of \(statistics.budget.bytes)"
        )
        return table.text
    }
}

/// `demo --json`: the gateway's part.
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
