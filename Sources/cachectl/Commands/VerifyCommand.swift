import ArgumentParser
import Larder

/// `verify`: checks the invariants and every byte.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every invariant of the store and every body against its digest.",
        discussion: """
            Exits 0 if all is well and 1 if something was found, mended or not; 65 if something is left after --repair, \
            or if the index cannot be opened at all. --repair moves damaged bodies to quarantine/ and removes their \
            entries; an index that cannot be opened is replaced by an empty one. Without it nothing changes.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Mend what is found.")
    var repair = false

    @Flag(help: "Check the index only: leave out reading the bodies, which takes most of the time.")
    var quick = false

    func run() throws {
        Interruption.listen()
        let bar = ProgressBar("verify", isQuiet: options.json)
        defer { bar.finish() }
        var lostFiles: Int?
        let report: CheckReport
        do {
            report = try check(bar)
        } catch let error as LarderError where error.code == .corruption && repair {
            // Nothing in the index can be trusted, so nothing names the bodies.
            lostFiles = try Store.rebuildIndex(at: options.path)
            report = try check(bar)
        }
        bar.finish()
        let outcome = VerifyJSON(report, repair: repair, lostFiles: lostFiles)
        try options.print(outcome, orText: Self.text(report, outcome))
        if !report.isClean, repair, !report.isRepaired { throw CommandError(.data, nil) }
        if !report.isClean || lostFiles != nil { throw CommandError.found }
    }

    private func check(_ bar: ProgressBar) throws -> CheckReport {
        // What the store would log is in the report.
        try options.withStore(repair ? .changing : .reading) {
            $0.logger.logLevel = .critical
        } _: { store in
            try store.check(repair: repair, readingBodies: !quick) { progress in
                try Interruption.check()
                bar.update(
                    progress.hashedBytes.bytes, of: progress.totalBytes.bytes,
                    "\(progress.hashedBytes) of \(progress.totalBytes)")
            }
        }
    }

    private static func text(_ report: CheckReport, _ outcome: VerifyJSON) -> String {
        var text = ""
        if let lost = outcome.lostFiles {
            text += "The index could not be read and was replaced by an empty one; the old one is in quarantine/.\n"
            text +=
                "Every entry is lost, and \(Render.count(lost)) body files that nothing names any more were removed.\n"
        }
        for violation in report.violations { text += "\(violation)\n" }
        if report.violationCount > report.violations.count {
            text += "... and \(Render.count(report.violationCount - report.violations.count)) more\n"
        }
        let looked =
            "\(Render.count(report.entryCount, "entry", "entries")), \(Render.count(report.blobCount, "body", "bodies")), "
            + "\(report.hashedBytes) compared with their digests"
        if report.isClean { return text + "ok: \(looked)\n" }
        let mended = outcome.repair ? (report.isRepaired ? ", all mended" : ", not all mended") : ""
        return text + "\(Render.count(report.violationCount, "violation", "violations"))\(mended): \(looked)\n"
    }
}

/// `verify --json`.
struct VerifyJSON: Encodable {
    let isClean: Bool
    let repair: Bool
    let isRepaired: Bool
    let violationCount: Int
    let violations: [ViolationJSON]
    let entryCount: Int
    let blobCount: Int
    let hashedBytes: Int64
    /// Body files lost with an index that could not be opened; null if it could.
    @Nullable var lostFiles: Int?

    /// One place where an invariant does not hold.
    struct ViolationJSON: Encodable {
        let invariant: String
        let message: String
        let isRepaired: Bool
    }

    init(_ report: CheckReport, repair: Bool, lostFiles: Int?) {
        isClean = report.isClean
        self.repair = repair
        isRepaired = repair && report.isRepaired
        violationCount = report.violationCount
        violations = report.violations.map {
            ViolationJSON(invariant: $0.invariant.rawValue, message: $0.message, isRepaired: $0.isRepaired)
        }
        entryCount = report.entryCount
        blobCount = report.blobCount
        hashedBytes = report.hashedBytes.bytes
        self.lostFiles = lostFiles
    }
}
