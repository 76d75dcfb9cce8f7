import ArgumentParser
import CachectlCore
import Larder
import LarderPackages

/// `verify`: checks the invariants, and every body against its digest.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every invariant of the store and its packages, and every body against its digest.",
        discussion: """
            Exits 0 if the store is intact, 1 if violations were found (even if all were repaired), and 65 if some are \
            left after --repair or the index is too damaged to open. --repair moves damaged bodies to quarantine/ and \
            removes their entries. It replaces a damaged index with a new one that has every readable entry; no other \
            process may have the store open meanwhile. Without --repair nothing changes.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Repair violations.")
    var repair = false

    @Flag(help: "Check only the index. Skip the bodies, which take most of the time.")
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
            var configuration = try options.configuration(.changing)
            configuration.logger.logLevel = .critical
            let rebuilt = try Store.rebuildIndex(at: options.path, configuration)
            rebuild = rebuilt
            report = rebuilt.check
        }
        bar.finish()
        let packages = try checkPackages()
        let outcome = VerifyJSON(
            report,
            packages.map {
                .init(
                    invariant: "package " + $0.invariant.rawValue, message: $0.message, isRepaired: $0.isRepaired)
            }, repair: repair, rebuild: rebuild)
        try options.print(outcome, orText: Self.text(report, packages, outcome, rebuild))
        if !outcome.isClean, repair, !outcome.isRepaired { throw CommandError(.data, nil) }
        if !outcome.isClean || rebuild != nil { throw CommandError.found }
    }

    /// The packages of a store that can be opened by now.
    private func checkPackages() throws -> [PackageViolation] {
        try options.withStore(repair ? .changing : .reading) { store in
            try Blocking.run { [repair] in try await PackageStore(store).check(repairs: repair) }
        }
    }

    /// Errors after which a rebuild examines the index page by page; it leaves a sound index as it is. `io`: a page of
    /// the index cannot be read.
    private static let mayBeDamage: Set<LarderError.Code> = [.corruption, .formatMismatch, .io]

    private func check(_ bar: ProgressBar) throws -> CheckReport {
        // The report has what the store would log.
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
        var text = rebuild.hasRestoredFormat ? "The file FORMAT was unreadable and has been rewritten.\n" : ""
        if rebuild.damages.isEmpty { return text }
        text += "The index was damaged and has been replaced. Damaged places:\n"
        for damage in rebuild.damages.prefix(20) { text += "  \(damage)\n" }
        if rebuild.damages.count > 20 { text += "  ... and \(Render.count(rebuild.damages.count - 20)) more\n" }
        text += "\(Render.count(rebuild.keptEntries, "entry", "entries")) kept, "
        text += rebuild.lostEntries.map { "\(Render.count($0)) lost.\n" } ?? "an unknown number lost.\n"
        if rebuild.hasLostBudget {
            text += "The budget was lost: set it again ('cachectl budget').\n"
        }
        if rebuild.isEmptied {
            text +=
                "\(Render.count(rebuild.removedFiles)) body files without an entry were removed. The old index is in "
                + "quarantine/.\n"
        }
        return text
    }

    private static func text(
        _ report: CheckReport, _ packages: [PackageViolation], _ outcome: VerifyJSON, _ rebuild: RebuildReport?
    ) -> String {
        var text = rebuild.map(Self.text) ?? ""
        for violation in report.violations { text += "\(violation)\n" }
        for violation in packages { text += "\(violation)\n" }
        if report.violationCount > report.violations.count {
            text += "... and \(Render.count(report.violationCount - report.violations.count)) more\n"
        }
        for path in report.foreignFiles { text += "not part of the store, ignored: \(path)\n" }
        var looked =
            "\(Render.count(report.entryCount, "entry", "entries")), "
            + "\(Render.count(report.blobCount, "body", "bodies")), \(report.hashedBytes) compared with their digests"
        if report.partialCount > 0 {
            looked += "; \(Render.count(report.partialCount, "body", "bodies")) in progress checked by length only"
        }
        if outcome.isClean { return text + "ok: \(looked)\n" }
        let repaired = outcome.repair ? (outcome.isRepaired ? ", all repaired" : ", not all repaired") : ""
        return text + "\(Render.count(outcome.violationCount, "violation", "violations"))\(repaired): \(looked)\n"
    }
}
