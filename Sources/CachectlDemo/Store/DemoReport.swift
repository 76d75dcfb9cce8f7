import CachectlCore
import Larder

/// The results of the first half of the demo.
struct DemoReport {
    let figures: DemoCounters.Snapshot
    /// The statistics after the threads ended.
    let statistics: Statistics
    /// The size that stat(2) found at the same moment.
    let recounted: Int64
    let highest: Int64
    let samples: Int
    let check: CheckReport
    let elapsed: Duration
    let wasInterrupted: Bool

    /// True if all checks passed.
    var isFine: Bool {
        figures.wrong == 0 && recounted == statistics.allocatedBytes.bytes && highest <= statistics.budget.bytes.bytes
            && check.isClean
    }

    /// The results as a table.
    var text: String {
        let lookups = figures.hits + figures.misses
        var table = Table([.left, .left])
        table.add("time", Render.elapsed(elapsed) + (wasInterrupted ? " (interrupted)" : ""))
        table.add(
            "lookups",
            "\(Render.count(lookups)), \(Render.count(Int64(Double(lookups) / max(elapsed.inSeconds, 0.001)))) per second"
        )
        table.add("hit ratio", Render.percent(figures.hits, of: lookups))
        table.add(
            "bytes served",
            "\(ByteCount(figures.hitBytes)), each body compared with its SHA-256, \(figures.wrong) wrong")
        table.add("stored", "\(Render.count(figures.stored)) files, \(ByteCount(figures.storedBytes))")
        if figures.skipped > 0 {
            table.add("skipped", "\(Render.count(figures.skipped)) files, unreadable or too large")
        }
        table.add("displaced", "\(Render.count(statistics.displacedCount)) entries")
        table.add(
            "in the store",
            "\(Render.count(statistics.entryCount)) entries, \(Render.count(statistics.blobCount)) different bodies")
        table.add("saved by sharing", Render.exactSize(statistics.savedBytes))
        table.add("reported size", Render.exactSize(statistics.allocatedBytes))
        table.add(
            "measured by stat",
            Render.exactSize(ByteCount(recounted))
                + (recounted == statistics.allocatedBytes.bytes ? ", equal" : ", DIFFERENT"))
        table.add(
            "highest size",
            Render.exactSize(ByteCount(highest)) + " in \(samples) measurements, "
                + "\(Render.percent(highest, of: statistics.budget.bytes.bytes)) of the budget")
        table.add(
            "verify",
            check.isClean
                ? "ok: \(Render.count(check.entryCount)) entries, \(check.hashedBytes) compared with their digests"
                : "\(Render.count(check.violationCount)) violations")
        let violations = check.violations.prefix(10).map { "  \($0)\n" }.joined()
        return table.text + violations
    }
}

/// `demo --json`.
struct DemoJSON: Encodable {
    let seconds: Double
    let interrupted: Bool
    let lookups: Int
    let hits: Int
    let hitRatio: Double
    let hitBytes: Int64
    let wrongBodies: Int
    let storedFiles: Int
    let storedFileBytes: Int64
    let skippedFiles: Int
    let displacedEntries: Int
    let entryCount: Int
    let blobCount: Int
    let savedBytes: Int64
    let allocatedBytes: Int64
    let recountedBytes: Int64
    let highestBytes: Int64
    let samples: Int
    @Nullable var budgetBytes: Int64?
    let verify: VerifyJSON
    /// The second half; null without it.
    @Nullable var gateway: WebJSON?

    init(_ report: DemoReport, _ web: WebReport?) {
        gateway = web.map(WebJSON.init)
        seconds = report.elapsed.inSeconds
        interrupted = report.wasInterrupted
        lookups = report.figures.hits + report.figures.misses
        hits = report.figures.hits
        hitRatio = lookups == 0 ? 0 : Double(hits) / Double(lookups)
        hitBytes = report.figures.hitBytes
        wrongBodies = report.figures.wrong
        storedFiles = report.figures.stored
        storedFileBytes = report.figures.storedBytes
        skippedFiles = report.figures.skipped
        displacedEntries = report.statistics.displacedCount
        entryCount = report.statistics.entryCount
        blobCount = report.statistics.blobCount
        savedBytes = report.statistics.savedBytes.bytes
        allocatedBytes = report.statistics.allocatedBytes.bytes
        recountedBytes = report.recounted
        highestBytes = report.highest
        samples = report.samples
        budgetBytes = BudgetJSON(report.statistics.budget).bytes
        verify = VerifyJSON(report.check, repair: false, rebuild: nil)
    }
}
