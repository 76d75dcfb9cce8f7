import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `put [KEY] [FILE]`: stores a body.
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Store a file, or standard input, under a key.",
        usage: """
            cachectl put <key> [<file>] [<options>]
            cachectl put --unique [<file>] [<options>]
            cachectl put --by-digest [<file>] [<options>]
            """,
        discussion: """
            Replaces the entry under KEY if there is one. Memory use does not depend on the length of the body. \
            Creates the store if it does not exist. With --unique or --by-digest there is no KEY: the output names the \
            one that was used.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.")
    var key: String?

    @Argument(help: "File to store. Default: standard input.", completion: .file())
    var file: String?

    /// How the key is made if none is given.
    enum Naming: String, EnumerableFlag {
        case unique, byDigest

        static func name(for value: Naming) -> NameSpecification {
            .customLong(value == .unique ? "unique" : "by-digest")
        }

        static func help(for value: Naming) -> ArgumentHelp? {
            value == .unique
                ? "Store under a new key: urn:uuid: and a random UUID."
                : "Store under sha256: and the SHA-256 of the body."
        }
    }

    @Flag var naming: Naming?

    @OptionGroup var kept: KeepOptions

    @Flag(help: "Wait until the entry would survive a power failure.")
    var durable = false

    @Option(
        help: ArgumentHelp("Expected SHA-256 of the body. If it differs, store nothing and exit 65.", valueName: "hex"))
    var digest: String?

    @Flag(help: "Store the body compressed, if that saves at least an eighth.")
    var compress = false

    @Option(help: ArgumentHelp("File whose bytes become the entry's metadata, at most 1 MiB.", valueName: "file"))
    var metadataFile: String?

    @Option(
        help: ArgumentHelp("Set the store's byte budget first.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    /// The file to store: the only argument where the key is made.
    private var source: String? { naming == nil ? file : key }

    func validate() throws {
        if naming == nil, key == nil { throw ValidationError("Give a KEY, --unique or --by-digest.") }
        if naming != nil, let file {
            throw ValidationError(
                "--unique and --by-digest take the place of KEY. Give only a FILE, not also '\(file)'.")
        }
        if let digest, Digest(hexadecimal: digest) == nil {
            throw ValidationError("--digest: '\(digest)' is not a valid SHA-256. Use 64 hexadecimal digits.")
        }
    }

    func run() throws {
        var putOptions = kept.putOptions
        putOptions.durability = durable ? .durable : .relaxed
        if compress { putOptions.compression = .trial }
        if let metadataFile {
            putOptions.metadata = try FileInput.bytes(of: FilePath(metadataFile), atMost: (1 << 20) + 1)
        }
        let declared = digest.flatMap { Digest(hexadecimal: $0) }
        let input = try FileInput(source.map { FilePath($0) })
        if source == nil, isatty(STDIN_FILENO) == 1 {
            Output.note("reading the body from the terminal until Ctrl-D; use 'cachectl put KEY FILE' to store a file")
        }
        // Nil: the body's digest.
        let key = naming == nil ? self.key.map { Key($0) } : naming == .unique ? .unique() : nil
        let report = try options.withStore(.creating, budget: budget) { store in
            // A file that is adopted is stored as it is.
            if let key, let path = input.regularFile, !compress {
                let (digest, length) = try Blocking.run { [putOptions] in
                    try await store.adopted(path, for: key, putOptions, digest: declared)
                }
                return PutJSON(key: key.text, digest: digest.hexadecimal, length: length)
            }
            let writer =
                try key.map { try store.writer(for: $0, putOptions, digest: declared) }
                ?? store.writerByContent(putOptions, digest: declared)
            let length = try input.read { try writer.write($0) }
            let digest = try writer.commit()
            return PutJSON(key: (key ?? Key(digest)).text, digest: digest.hexadecimal, length: length)
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

    func validate() throws {
        for tag in tag {
            do { try PutOptions.validate(callersTag: tag) } catch { throw ValidationError("--tag: \(error.message)") }
        }
        guard PutOptions.canHold(tags: tag) else {
            throw ValidationError("--tag: an entry can have 4,096 tags of 32,768 bytes together at most.")
        }
    }

    /// The options of the library.
    var putOptions: PutOptions { PutOptions(lifetime: lifetime ?? .standard, tags: tag, isPinned: pin) }
}

/// `put --json`.
private struct PutJSON: Encodable {
    let key: String
    let digest: String
    let length: Int64
}
