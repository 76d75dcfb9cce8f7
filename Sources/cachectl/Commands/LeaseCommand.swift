import ArgumentParser
import CachectlCore
import Larder

/// `lease`: keeps entries out of displacement for a while.
struct LeaseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lease",
        abstract: "Protect entries from displacement for a while.",
        discussion: """
            Unlike a pin, a lease ends by itself. A further lease of the same key, tag or body makes it last longer, \
            never shorter. What is leased need not exist yet.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Keys of entries.", transform: { Key($0) })
    var keys: [Key] = []

    @Option(help: ArgumentHelp("All entries with this tag; repeatable.", valueName: "tag"))
    var tag: [String] = []

    @Option(help: ArgumentHelp("All entries with this body, by its SHA-256; repeatable.", valueName: "hex"))
    var digest: [String] = []

    @Option(
        name: .customLong("for"), help: ArgumentHelp("How long: 10m, 2h, 1d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var duration: Duration

    func validate() throws {
        if keys.isEmpty, tag.isEmpty, digest.isEmpty { throw ValidationError("Give a KEY, --tag or --digest.") }
        if keys.contains(where: { $0.bytes.isEmpty }) {
            throw ValidationError("KEY is empty. Give the key of an entry.")
        }
        if tag.contains("") { throw ValidationError("--tag is empty. Give the name of a tag.") }
        for text in digest where Digest(hexadecimal: text) == nil {
            throw ValidationError("--digest: '\(text)' is not a valid SHA-256. Use 64 hexadecimal digits.")
        }
    }

    func run() throws {
        let count = try options.withStore(.changing) { store in
            var batch = WriteBatch()
            for key in keys {
                for key in try StoredVariants.keys(under: key, in: store) { batch.lease(key, for: duration) }
            }
            for tag in tag { batch.lease(tag: tag, for: duration) }
            for digest in digest.compactMap({ Digest(hexadecimal: $0) }) { batch.lease(digest: digest, for: duration) }
            try store.write(batch).throwIfFailed()
            return batch.count
        }
        try options.print(LeaseJSON(leases: count), orText: "took \(Render.count(count, "lease", "leases"))\n")
    }
}

/// `lease --json`.
private struct LeaseJSON: Encodable {
    let leases: Int
}
