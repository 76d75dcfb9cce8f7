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
            Give KEY, --all, or options that select entries. Several options remove only the entries that all of them \
            select, and never one that 'ls' with the same options does not list. Pinned entries are removed too, \
            because a pin protects only from displacement. For a URL with several variants, all of them are removed. \
            Exits 1 if there is no entry under KEY; an empty selection is not an error.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key?

    @OptionGroup var selecting: SelectionOptions

    @Flag(help: "Remove all entries.")
    var all = false

    func validate() throws {
        // Like an empty prefix, a key to leave alone is not enough to remove everything else.
        if selecting.selectsAllButSome, !all {
            throw ValidationError("--except alone removes everything else. Add --all, or options that select entries.")
        }
        if [key != nil, selecting.isGiven && !selecting.selectsAllButSome, all].filter({ $0 }).count != 1 {
            throw ValidationError("Give KEY, --all, or options that select entries, such as --prefix or --tag.")
        }
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
            guard let selection = selecting.selection(at: store.now) else { return (try store.clear(), false) }
            return (try remove(ListedEntries(store, selection), of: try store.statistics().entryCount), false)
        }
        try options.print(
            RemovedJSON(removed: removed),
            orText: "removed "
                + Render.count(removed, isOfVariants ? "variant" : "entry", isOfVariants ? "variants" : "entries")
                + "\n")
    }

    private func remove(_ entries: ListedEntries, of total: Int) throws -> Int {
        let bar = ProgressBar("rm", isQuiet: options.json)
        defer { bar.finish() }
        return try entries.removeAll { bar.update(Int64($0), of: Int64(total), "\(Render.count($0)) removed") }
    }
}

/// `rm --json`.
private struct RemovedJSON: Encodable {
    let removed: Int
}
