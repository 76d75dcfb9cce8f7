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
            The key scheme://host/a/b becomes DIR/scheme/host/a/b, other keys go to DIR/_keys; no key leads out of DIR. \
            With --base-url the entries under it are written relative to DIR, so that 'import' is undone. Files that exist \
            are left as they are unless --force is given. Expired entries are left out, and HTTP responses of which only a \
            part is stored, which makes it exit 1 (--partial takes them). Of responses that vary each gets a file whose name \
            ends with the request fields that select it, in brackets. Does not change the store.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The directory; made if it is missing.", completion: .directory)
    var directory: String

    @Option(help: ArgumentHelp("Only keys under this URL, which is cut off.", valueName: "url"))
    var baseURL: String?

    @Option(help: "Only keys that start with this.", transform: { Key($0) })
    var prefix: Key?

    @Option(help: "Only entries put with this tag.")
    var tag: String?

    @Flag(help: "Write over files that exist.")
    var force = false

    @Flag(help: "Write the stored part of HTTP responses that are not complete, too.")
    var partial = false

    func validate() throws {
        if [baseURL != nil, prefix != nil, tag != nil].filter({ $0 }).count > 1 {
            throw ValidationError("Give at most one of --base-url, --prefix and --tag.")
        }
        if directory.isEmpty { throw ValidationError("DIR is empty.") }
    }

    func run() throws {
        Interruption.listen()
        let base = baseURL.map { Key($0.hasSuffix("/") ? $0 : $0 + "/") }
        let selection: Selection = tag.map { .tag($0) } ?? (prefix ?? base).map { .prefix($0) } ?? .all
        let bar = ProgressBar("export", isQuiet: options.json)
        let outcome = try options.withStore(.reading) { store in
            let total = Int64(try store.statistics().entryCount)
            var exporter = try Exporter(
                store, to: FilePath(directory), base: base, replaces: force, takesParts: partial)
            var done: Int64 = 0
            let now = Timestamp.now
            try store.forEach(selection) { entry in
                try Interruption.check()
                done += 1
                // The base itself has no name in the tree.
                if let base, entry.key == base { return }
                if entry.expires.map({ $0 <= now }) ?? false { return }
                try exporter.export(entry)
                bar.update(done, of: total, "\(ByteCount(exporter.outcome.bytes))")
            }
            return exporter.outcome
        }
        bar.finish()
        if outcome.existing > 0 {
            Output.note(
                Render.count(outcome.existing, "file that exists was", "files that exist were")
                    + " not changed: --force writes over them")
        }
        if outcome.incomplete > 0 {
            Output.note(
                Render.count(outcome.incomplete, "response is", "responses are")
                    + " not complete and left out: --partial writes what there is")
        }
        let files = Render.count(outcome.files, "file", "files")
        try options.print(
            ExportJSON(outcome), orText: "wrote \(files), \(ByteCount(outcome.bytes)), to \(directory)\n")
        if outcome.incomplete > 0 { throw CommandError.found }
    }
}

/// `export --json`.
private struct ExportJSON: Encodable {
    let files: Int
    let bytes: Int64
    let skippedExisting: Int
    let vanished: Int
    let skippedIncomplete: Int

    init(_ outcome: Exporter.Outcome) {
        files = outcome.files
        bytes = outcome.bytes
        skippedExisting = outcome.existing
        vanished = outcome.vanished
        skippedIncomplete = outcome.incomplete
    }
}
