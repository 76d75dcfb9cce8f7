import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP

/// `rm`: removes one entry, or all selected entries.
struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove an entry, or all selected entries.",
        discussion: """
            Give KEY or exactly one option that selects entries. Pinned entries are removed too, because a pin \
            protects only from displacement. For a URL with several variants, all of them are removed. Exits 1 if \
            there is no entry under KEY; an empty selection is not an error.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key?

    @Option(help: "Remove all keys with this prefix.", transform: { Key($0) })
    var prefix: Key?

    @Option(help: "Remove all entries with this tag.")
    var tag: String?

    @Option(
        help: ArgumentHelp("Remove all entries that were put longer ago: 7d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var olderThan: Duration?

    @Option(
        help: ArgumentHelp(
            "Remove all entries that were neither put nor hit for this long: 30d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var unusedFor: Duration?

    @Flag(help: "Remove all expired entries.")
    var expired = false

    @Flag(help: "Remove all entries.")
    var all = false

    func validate() throws {
        let selectors = [key != nil, prefix != nil, tag != nil, olderThan != nil, unusedFor != nil, expired, all]
        if selectors.filter({ $0 }).count != 1 {
            throw ValidationError(
                "Give exactly one of KEY, --prefix, --tag, --older-than, --unused-for, --expired and --all.")
        }
        // A shell passes an empty argument for a variable that is not set.
        if prefix?.bytes.isEmpty == true {
            throw ValidationError("--prefix is empty and would select everything. Use --all to remove everything.")
        }
        if tag?.isEmpty == true { throw ValidationError("--tag is empty. Give the name of a tag.") }
        if key?.bytes.isEmpty == true { throw ValidationError("KEY is empty. Give the key of an entry.") }
    }

    func run() throws {
        let (removed, isOfVariants) = try options.withStore(.changing) { store in
            if let key {
                let isList = try store.attributes(of: key).map { VariantList($0) != nil } ?? false
                // As PURGE does: including parts, responses for several queries, and responses to QUERY.
                var count = try StoredVariants.purge(key, from: store)
                let rest = try StoredVariants.removeAll(under: key, from: store)
                count += try rest ?? (store.remove(key) ? 1 : 0)
                guard count > 0 else { throw CommandError.missing(key) }
                return (count, isList || rest != nil)
            }
            return (all ? try store.clear() : try remove(selection, from: store), false)
        }
        try options.print(
            RemovedJSON(removed: removed),
            orText: "removed "
                + Render.count(removed, isOfVariants ? "variant" : "entry", isOfVariants ? "variants" : "entries")
                + "\n")
    }

    private func remove(_ selection: Selection, from store: Store) throws -> Int {
        Interruption.listen()
        let bar = ProgressBar("rm", isQuiet: options.json)
        defer { bar.finish() }
        return try store.remove(selection) { step in
            try Interruption.check()
            bar.update(Int64(step.examined), of: Int64(step.total), "\(Render.count(step.removed)) removed")
        }
    }

    private var selection: Selection {
        if let prefix { return .prefix(prefix) }
        if let tag { return .tag(tag) }
        if let olderThan { return .storedBefore(.now - olderThan) }
        if let unusedFor { return .unusedSince(.now - unusedFor) }
        return .expired
    }
}

/// `rm --json`.
private struct RemovedJSON: Encodable {
    let removed: Int
}
