import ArgumentParser
import CachectlCore
import Larder

/// `verify`: checks the invariants and every byte.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every invariant of the store and every body against its digest.",
        discussion: """
            Exits 0 if all is well and 1 if something was found, repaired or not; 65 if something is left after --repair, \
            or if the index is too damaged to be opened. --repair moves damaged bodies to quarantine/ and removes their \
            entries; a damaged index is replaced by a new one with every entry that can still be read, for which no other \
            process may have the store open. Without --repair nothing changes.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Repair what is found.")
    var repair = false

    @Flag(help: "Check the index only: leave out reading the bodies, which takes most of the time.")
    var quick = false

    func run() throws {
        Interruption.listen()
        let bar = ProgressBar("verify", isQuiet: options.json)
        defer { bar.finish() }
        var rebuild: RebuildReport?
        let report: CheckReport
        do {
            report = try check(bar)
        } catch let error as LarderError where Self.mayBeDamage.contains(error.code) && repair {
            var configuration = Configuration()
            configuration.logger.logLevel = .critical
            configuration.allowsOtherOwner = options.anyOwner
            let rebuilt = try Store.rebuildIndex(at: options.path, configuration)
            rebuild = rebuilt
            report = rebuilt.check
        }
        bar.finish()
        let outcome = VerifyJSON(report, repair: repair, rebuild: rebuild)
        try options.print(outcome, orText: Self.text(report, outcome, rebuild))
        if !report.isClean, repair, !report.isRepaired { throw CommandError(.data, nil) }
        if !report.isClean || rebuild != nil { throw CommandError.found }
    }

    /// After which a rebuild looks at the index page by page; one that is sound it leaves alone. `io`: a page of it cannot be read.
    private static let mayBeDamage: Set<LarderError.Code> = [.corruption, .formatMismatch, .io]

    private func check(_ bar: ProgressBar) throws -> CheckReport {
        // What the store would log is in the report.
        try options.withStore(repair ? .changing : .reading) {
            $0.logger.logLevel = .critical
            $0.indexCheck = .always
        } _: { store in
            try store.check(repair: repair, readingBodies: !quick) { progress in
                try Interruption.check()
                bar.update(
                    progress.hashedBytes.bytes, of: progress.totalBytes.bytes,
                    "\(progress.hashedBytes) of \(progress.totalBytes)")
            }
        }
    }

    private static func text(_ rebuild: RebuildReport) -> String {
        var text = rebuild.hasRestoredFormat ? "The file FORMAT could not be read and was written again.\n" : ""
        if rebuild.damages.isEmpty { return text }
        text += "The index was damaged and was replaced by a new one. Damaged:\n"
        for damage in rebuild.damages.prefix(20) { text += "  \(damage)\n" }
        if rebuild.damages.count > 20 { text += "  ... and \(Render.count(rebuild.damages.count - 20)) more places\n" }
        text += "\(Render.count(rebuild.keptEntries, "entry", "entries")) kept, "
        text += rebuild.lostEntries.map { "\(Render.count($0)) lost.\n" } ?? "the others lost.\n"
        if rebuild.hasLostBudget {
            text += "The budget was lost with the counters: set it again ('cachectl budget').\n"
        }
        if rebuild.isEmptied {
            text +=
                "\(Render.count(rebuild.removedFiles)) body files that nothing names any more were removed; the old index is in "
                + "quarantine/.\n"
        }
        return text
    }

    private static func text(_ report: CheckReport, _ outcome: VerifyJSON, _ rebuild: RebuildReport?) -> String {
        var text = rebuild.map(Self.text) ?? ""
        for violation in report.violations { text += "\(violation)\n" }
        if report.violationCount > report.violations.count {
            text += "... and \(Render.count(report.violationCount - report.violations.count)) more\n"
        }
        let looked =
            "\(Render.count(report.entryCount, "entry", "entries")), \(Render.count(report.blobCount, "body", "bodies")), "
            + "\(report.hashedBytes) compared with their digests"
        if report.isClean { return text + "ok: \(looked)\n" }
        let repaired = outcome.repair ? (report.isRepaired ? ", all repaired" : ", not all repaired") : ""
        return text + "\(Render.count(report.violationCount, "violation", "violations"))\(repaired): \(looked)\n"
    }
}
