import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `export DIR`: writes bodies to a directory tree.
struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the bodies of entries to a directory tree.",
        discussion: """
            The key scheme://host/a/b becomes DIR/scheme/host/a/b; other keys go to DIR/_keys. No key leads outside \
            DIR. --base-url writes the entries under that URL relative to DIR, which reverses 'import'. Existing files \
            stay as they are unless --force is given. Expired entries are skipped. Incomplete HTTP responses are \
            skipped too (--partial writes them), and so are bodies that do not match their digest: the exit status is \
            then 1. Each variant of a response gets its \
            own file; its name ends with the request fields that select it, in brackets. Does not change the store.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The directory; created if it does not exist.", completion: .directory)
    var directory: String

    @Option(help: ArgumentHelp("Export only keys under this URL, and remove it from the file names.", valueName: "url"))
    var baseURL: String?

    @OptionGroup var selecting: SelectionOptions

    @Flag(help: "Overwrite existing files.")
    var force = false

    @Flag(help: "Also write the stored part of incomplete HTTP responses.")
    var partial = false

    func validate() throws {
        if directory.isEmpty { throw ValidationError("DIR is empty.") }
    }

    func run() throws {
        Interruption.listen()
        let base = baseURL.map { Key($0.hasSuffix("/") ? $0 : $0 + "/") }
        let bar = ProgressBar("export", isQuiet: options.json)
        let (outcome, expired) = try options.withStore(.reading) { configuration in
            configuration.verification = .always
        } _: { store in
            let total = Int64(try store.statistics().entryCount)
            var exporter = try Exporter(
                store, to: FilePath(directory), base: base, replaces: force, takesParts: partial)
            var done: Int64 = 0
            var expired = 0
            let now = store.now
            let below = base.map { Selection.prefix($0) } ?? .all
            let selection = selecting.selection(at: now).map { below && $0 } ?? below
            try ListedEntries(store, selection).forEach { entry in
                done += 1
                // The base URL itself has no name in the tree.
                if let base, entry.key == base { return }
                if entry.expires.map({ $0 <= now }) ?? false {
                    expired += 1
                    return
                }
                try exporter.export(entry)
                bar.update(done, of: total, "\(ByteCount(exporter.outcome.bytes))")
            }
            // Some are not even listed.
            var outcome = exporter.outcome
            outcome.damaged = max(outcome.damaged, store.damagedBodies)
            return (outcome, expired)
        }
        bar.finish()
        if expired > 0 { Output.note(Render.count(expired, "expired entry", "expired entries") + " skipped") }
        if outcome.existing > 0 {
            Output.note(
                Render.count(outcome.existing, "file already exists", "files already exist")
                    + "; --force overwrites them")
        }
        if outcome.hashed > 0 {
            Output.note(
                Render.count(outcome.hashed, "file is", "files are")
                    + " in _hashed, because a file or a link is in the place of a directory")
        }
        if outcome.incomplete > 0 {
            Output.note(
                Render.count(outcome.incomplete, "incomplete response", "incomplete responses")
                    + " skipped; --partial writes what is stored")
        }
        if outcome.damaged > 0 {
            Output.note(
                Render.count(outcome.damaged, "damaged or missing body", "damaged or missing bodies")
                    + " skipped; see 'cachectl verify'")
        }
        let files = Render.count(outcome.files, "file", "files")
        try options.print(
            ExportJSON(outcome, expired: expired),
            orText: "wrote \(files), \(ByteCount(outcome.bytes)), to \(directory)\n")
        if outcome.incomplete > 0 || outcome.damaged > 0 { throw CommandError.found }
    }
}

/// `export --json`.
private struct ExportJSON: Encodable {
    let files: Int
    let bytes: Int64
    let hashed: Int
    let skippedExisting: Int
    let vanished: Int
    let damaged: Int
    let skippedIncomplete: Int
    let skippedExpired: Int

    init(_ outcome: Exporter.Outcome, expired: Int) {
        skippedExpired = expired
        files = outcome.files
        hashed = outcome.hashed
        bytes = outcome.bytes
        skippedExisting = outcome.existing
        vanished = outcome.vanished
        damaged = outcome.damaged
        skippedIncomplete = outcome.incomplete
    }
}
