import ArgumentParser
import CachectlCore
import Larder
import LarderPackages

/// `gc`: collects what the store no longer needs.
struct CollectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Displace entries down to the budget, remove expired and leftover data, and free disk space.",
        discussion: """
            Safe while other processes use the store. Pinned entries stay, expired or not. --dry-run changes nothing, \
            not even the budget; the displacement by --budget is then an estimate.
            """)

    @OptionGroup var options: StoreOptions

    @Option(
        help: ArgumentHelp("Set the store's byte budget first.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    @Flag(help: "Only report what would be done.")
    var dryRun = false

    @Flag(help: "Return every free page of the index to the file system, not only long runs of pages.")
    var compact = false

    /// Ends what killed installations have left. One that is under way is left alone.
    static func recoverPackages(_ store: Store) async throws {
        do {
            try await PackageStore(store).recover()
        } catch let error as PackageError where error.code == .busy {}
    }

    func run() throws {
        Interruption.listen()
        let bar = ProgressBar("gc", isQuiet: options.json)
        defer { bar.finish() }
        let steps = Int64(CollectionStep.allCases.count)
        let report = try options.withStore(dryRun ? .reading : .changing) { store in
            let before = try store.statistics()
            if let budget, !dryRun { try store.setByteBudget(budget) }
            if !dryRun { try Blocking.run { try await Self.recoverPackages(store) } }
            var report = try store.collect(dryRun: dryRun, supposing: budget, compact: compact) { step, report in
                try Interruption.check()
                let number = Int64(CollectionStep.allCases.firstIndex(of: step) ?? 0)
                bar.update(number, of: steps, "\(step.rawValue), \(Render.count(Self.found(report))) so far")
            }
            if !dryRun {
                // Setting the budget displaced entries before the collection started.
                report.displacedEntries += try store.displacedDuring(before, report)
                report.allocatedBefore = before.allocatedBytes
            }
            return report
        }
        bar.finish()
        try options.print(CollectionJSON(report, dryRun: dryRun), orText: Self.table(report, dryRun: dryRun))
    }

    private static func found(_ report: CollectionReport) -> Int {
        report.expiredEntries + report.displacedEntries + report.otherVersionEntries + report.orphanBlobs
            + report.staleFiles + report.danglingEntries
    }

    private static func table(_ report: CollectionReport, dryRun: Bool) -> String {
        var table = Table([.left, .right])
        table.add("stale files", Render.count(report.staleFiles))
        table.add("expired entries", Render.count(report.expiredEntries))
        table.add("entries of other versions", Render.count(report.otherVersionEntries))
        table.add("dangling entries", Render.count(report.danglingEntries))
        table.add("orphan blobs", Render.count(report.orphanBlobs))
        table.add("displaced entries", Render.count(report.displacedEntries))
        table.add("allocated before", report.allocatedBefore.description)
        table.add("allocated after", report.allocatedAfter.description)
        table.add("freed", report.freedBytes.description)
        return (dryRun ? "dry run: nothing changed\n" : "") + table.text
    }
}

extension Store {
    /// Entries that this process displaced since `before`, without those in the report.
    fileprivate func displacedDuring(_ before: Statistics, _ report: CollectionReport) throws -> Int {
        max(0, try statistics().displacedCount - before.displacedCount - report.displacedEntries)
    }
}

/// `gc --json`.
private struct CollectionJSON: Encodable {
    let dryRun: Bool
    let staleFiles: Int
    let expiredEntries: Int
    let otherVersionEntries: Int
    let danglingEntries: Int
    let orphanBlobs: Int
    let displacedEntries: Int
    let allocatedBefore: Int64
    let allocatedAfter: Int64
    let freedBytes: Int64

    init(_ report: CollectionReport, dryRun: Bool) {
        self.dryRun = dryRun
        staleFiles = report.staleFiles
        expiredEntries = report.expiredEntries
        otherVersionEntries = report.otherVersionEntries
        danglingEntries = report.danglingEntries
        orphanBlobs = report.orphanBlobs
        displacedEntries = report.displacedEntries
        allocatedBefore = report.allocatedBefore.bytes
        allocatedAfter = report.allocatedAfter.bytes
        freedBytes = report.freedBytes.bytes
    }
}
