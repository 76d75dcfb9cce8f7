import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `import DIR`: stores the files of a directory tree.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Store the files of a directory tree.",
        discussion: """
            The key of a file is the base URL followed by its path in the tree, percent-encoded. The default base URL \
            is file:// followed by the absolute path of DIR. Symbolic links are not followed. Files that are too large \
            for the budget are skipped and reported. Exits 1 if a file cannot be read. Creates the store if it does \
            not exist.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The directory.", completion: .directory)
    var directory: String

    @Option(
        help: ArgumentHelp(
            "URL that every key starts with; a slash is added if it has none at its end.", valueName: "url"))
    var baseURL: String?

    @OptionGroup var kept: KeepOptions

    @Option(
        help: ArgumentHelp("Set the store's byte budget first.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    @Option(help: ArgumentHelp("Number of files to store in parallel, 1 ... 16.", valueName: "n"))
    var workers = 3

    func validate() throws {
        if !(1...16).contains(workers) { throw ValidationError("--workers: \(workers) is out of range. Use 1 ... 16.") }
        if baseURL?.isEmpty == true { throw ValidationError("--base-url is empty.") }
    }

    func run() throws {
        Interruption.listen()
        let root = try FileTreeWalk.root(FilePath(directory))
        var walk = FileTreeWalk(root)
        var files: [FileTreeWalk.File] = []
        try walk.run { file in
            try Interruption.check()
            files.append(file)
        }
        let bar = ProgressLine("import", isQuiet: options.json)
        let found = walk
        let outcome = try options.withStore(.creating, budget: budget) { store in
            let importer = Importer(store, found, files: files, base: base(root), options: kept.putOptions)
            return try importer.run(workers: workers) { outcome, total in
                bar.update(Int64(outcome.files), of: Int64(total), "\(ByteCount(outcome.bytes))")
            }
        }
        bar.finish()
        for text in outcome.tooLarge { Output.note("too large, skipped: \(text)") }
        for text in outcome.failed { Output.note("not stored: \(text)") }
        try options.print(ImportJSON(outcome), orText: Self.text(outcome))
        if !outcome.failed.isEmpty { throw CommandError.found }
    }

    private func base(_ root: FilePath) -> [UInt8] {
        guard let baseURL else { return KeyPath.base(directory: root.platformBytes) }
        return Array((baseURL.hasSuffix("/") ? baseURL : baseURL + "/").utf8)
    }

    private static func text(_ outcome: Importer.Outcome) -> String {
        var text = "stored \(Render.count(outcome.files, "file", "files")), \(ByteCount(outcome.bytes))"
        if !outcome.tooLarge.isEmpty { text += ", skipped \(Render.count(outcome.tooLarge.count)) too large" }
        if !outcome.failed.isEmpty { text += ", \(Render.count(outcome.failed.count)) unreadable" }
        return text + "\n"
    }
}

/// `import --json`.
private struct ImportJSON: Encodable {
    let files: Int
    let bytes: Int64
    let skippedTooLarge: [String]
    let failed: [String]

    init(_ outcome: Importer.Outcome) {
        files = outcome.files
        bytes = outcome.bytes
        skippedTooLarge = outcome.tooLarge
        failed = outcome.failed
    }
}
