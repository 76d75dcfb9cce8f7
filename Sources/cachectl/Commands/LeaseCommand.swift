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
            never shorter. A key, tag or body that is leased need not exist yet. With options that select entries other \
            than --tag, the entries that all of them select now are leased.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Keys of entries.", transform: { Key($0) })
    var keys: [Key] = []

    @OptionGroup var selecting: SelectionOptions

    @Option(help: ArgumentHelp("All entries with this body, by its SHA-256; repeatable.", valueName: "hex"))
    var digest: [String] = []

    @Option(
        name: .customLong("for"), help: ArgumentHelp("How long: 10m, 2h, 1d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var duration: Duration

    /// Whether there are options that select entries, other than tags, which are leased themselves.
    private var selects: Bool {
        var others = selecting
        others.tag = []
        return others.isGiven
    }

    func validate() throws {
        if keys.isEmpty, digest.isEmpty, !selecting.isGiven {
            throw ValidationError("Give a KEY, --digest, or options that select entries, such as --tag.")
        }
        if selects, !keys.isEmpty || !digest.isEmpty {
            throw ValidationError("Give KEY and --digest, or options that select entries, not both.")
        }
        if keys.contains(where: { $0.bytes.isEmpty }) {
            throw ValidationError("KEY is empty. Give the key of an entry.")
        }
        for text in digest where Digest(hexadecimal: text) == nil {
            throw ValidationError("--digest: '\(text)' is not a valid SHA-256. Use 64 hexadecimal digits.")
        }
    }

    func run() throws {
        let count = try options.withStore(.changing) { store in
            if selects {
                return try ListedEntries(store, selecting.selection(at: store.now)).changeAll {
                    $0.lease($1, for: duration)
                }
            }
            var batch = WriteBatch()
            for key in keys {
                for key in try StoredVariants.keys(under: key, in: store) { batch.lease(key, for: duration) }
            }
            for tag in selecting.tag { batch.lease(tag: tag, for: duration) }
            for digest in digest.compactMap({ Digest(hexadecimal: $0) }) { batch.lease(digest: digest, for: duration) }
            try store.write(batch).throwIfFailed()
            return batch.count
        }
        try options.print(GrantedLeaseJSON(leases: count), orText: "took \(Render.count(count, "lease", "leases"))\n")
    }
}

/// `lease --json`.
private struct GrantedLeaseJSON: Encodable {
    let leases: Int
}
