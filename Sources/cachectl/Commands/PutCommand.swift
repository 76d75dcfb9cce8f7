import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `put KEY [FILE]`: stores a body.
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Store a file, or standard input, under a key.",
        discussion: """
            Replaces the entry under KEY if there is one. Memory use does not depend on the length of the body. \
            Creates the store if it does not exist.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key

    @Argument(help: "File to store. Default: standard input.", completion: .file())
    var file: String?

    @OptionGroup var kept: KeepOptions

    @Flag(help: "Wait until the entry would survive a power failure.")
    var durable = false

    @Option(
        help: ArgumentHelp("Expected SHA-256 of the body. If it differs, store nothing and exit 65.", valueName: "hex"))
    var digest: String?

    @Option(help: ArgumentHelp("File whose bytes become the entry's metadata, at most 1 MiB.", valueName: "file"))
    var metadataFile: String?

    @Option(
        help: ArgumentHelp("Set the store's byte budget first.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    func validate() throws {
        if let digest, Digest(hexadecimal: digest) == nil {
            throw ValidationError("--digest: '\(digest)' is not a valid SHA-256. Use 64 hexadecimal digits.")
        }
    }

    func run() throws {
        var putOptions = kept.putOptions
        putOptions.durability = durable ? .durable : .relaxed
        if let metadataFile {
            putOptions.metadata = try FileInput.bytes(of: FilePath(metadataFile), atMost: (1 << 20) + 1)
        }
        let declared = digest.flatMap { Digest(hexadecimal: $0) }
        let source = try FileInput(file.map { FilePath($0) })
        if file == nil, isatty(STDIN_FILENO) == 1 {
            Output.note("reading the body from the terminal until Ctrl-D; use 'cachectl put KEY FILE' to store a file")
        }
        let report = try options.withStore(.creating, budget: budget) { store in
            if let path = source.regularFile {
                let length = source.length
                let digest = try store.adopt(path, for: key, putOptions, digest: declared)
                return PutJSON(key: key.text, digest: digest.hexadecimal, length: length)
            }
            let writer = try store.writer(for: key, putOptions, digest: declared)
            let length = try source.read { try writer.write($0) }
            return PutJSON(key: key.text, digest: try writer.commit().hexadecimal, length: length)
        }
        try options.print(
            report, orText: "stored \(ByteCount(report.length)) under \(report.key), SHA-256 \(report.digest)\n")
    }
}

/// Properties of the entries that a command puts.
struct KeepOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Tag of the entry; repeatable.", valueName: "tag"))
    var tag: [String] = []

    @Option(
        help: ArgumentHelp("How long the entry is fresh: 30s, 12h, 7d, 1d12h, never.", valueName: "duration"),
        transform: DurationArgument.parseLifetime)
    var lifetime: Lifetime?

    @Flag(help: "Protect the entry from displacement.")
    var pin = false

    /// The options of the library.
    var putOptions: PutOptions { PutOptions(lifetime: lifetime ?? .standard, tags: tag, isPinned: pin) }
}

/// `put --json`.
private struct PutJSON: Encodable {
    let key: String
    let digest: String
    let length: Int64
}
