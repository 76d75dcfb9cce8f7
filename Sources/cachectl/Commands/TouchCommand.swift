import ArgumentParser
import CachectlCore
import Larder

/// `touch`: counts as an access without reading the body.
struct TouchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "touch",
        abstract: "Mark an entry, or all selected entries, as used, and optionally set their lifetime.",
        discussion: """
            Give KEY, or options that select entries. Exits 1 if there is no entry under KEY; an empty selection is not an \
            error.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key?

    @OptionGroup var selecting: SelectionOptions

    @Option(
        help: ArgumentHelp("New lifetime, from now: 12h, 7d, never.", valueName: "duration"),
        transform: DurationArgument.parseLifetime)
    var lifetime: Lifetime?

    func validate() throws {
        if (key != nil) == selecting.isGiven {
            throw ValidationError("Give either KEY or options that select entries, such as --prefix or --tag.")
        }
    }

    func run() throws {
        guard let key else { return try touchSelected() }
        let (entry, versions) = try options.withStore(.changing) { store in
            // The first is the key itself, or what answers for it.
            let keys = try StoredVariants.keys(under: key, in: store)
            try StoredVariants.touch(keys, lifetime, in: store)
            guard let first = keys.first, let entry = try store.attributes(of: first) else {
                throw CommandError.missing(key)
            }
            return (entry, try VersionNames(of: store))
        }
        let expiry = entry.expires.map { "expires \($0)" } ?? "never expires"
        try options.print(EntryJSON(entry, versions), orText: "touched \(key), \(expiry)\n")
    }

    private func touchSelected() throws {
        let count = try options.withStore(.changing) { store in
            let entries = ListedEntries(store, selecting.selection(at: store.now))
            guard let lifetime else { return try entries.changeAll { $0.touch($1) } }
            var keys: [Key] = []
            try entries.forEach { keys.append($0.key) }
            let count = try StoredVariants.touch(keys, lifetime, in: store)
            return count
        }
        try options.print(
            TouchedJSON(touched: count), orText: "touched \(Render.count(count, "entry", "entries"))\n")
    }
}

/// `touch --json` with options that select entries.
private struct TouchedJSON: Encodable {
    let touched: Int
}
