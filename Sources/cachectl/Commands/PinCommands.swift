import ArgumentParser
import CachectlCore
import Larder

/// `pin`: protects entries from displacement.
struct PinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Protect an entry, all entries with a tag, or all selected entries, from displacement.",
        discussion: """
            --tag alone pins the tag: it also protects entries that are put later. With further options, the entries \
            that they select now are pinned. Exits 1 if there is no entry under KEY.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: true, options) }
}

/// `unpin`: undoes `pin`.
struct UnpinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Unpin an entry, all entries with a tag, or all selected entries.",
        discussion: """
            An entry can be pinned by its key and by several tags. It stays pinned until all of them are unpinned. --tag \
            alone unpins the tag. Exits 1 if there is no entry under KEY.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: false, options) }
}

/// What to pin or unpin: one entry, a tag, or what is selected.
struct PinSubject: ParsableArguments {
    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key?

    @OptionGroup var selecting: SelectionOptions

    func validate() throws {
        if (key != nil) == selecting.isGiven {
            throw ValidationError("Give either KEY or options that select entries, such as --tag.")
        }
    }

    func set(isPinned: Bool, _ options: StoreOptions) throws {
        // Pinned by a tag, too, or by the key.
        var stillPinned = 0
        let count = try options.withStore(.changing) { store in
            if let tag = selecting.onlyTag { return isPinned ? try store.pin(tag: tag) : try store.unpin(tag: tag) }
            guard let key else {
                let change = EntryChange(isPinned: isPinned)
                let entries = ListedEntries(store, selecting.selection(at: store.now))
                let count = try entries.changeAll(reachesOthers: isPinned) { $0.change($1, change) }
                if !isPinned { try entries.forEach { if $0.isPinned { stillPinned += 1 } } }
                return count
            }
            var count = 0
            for key in try StoredVariants.keys(under: key, in: store)
            where isPinned ? try store.pin(key) : try store.unpin(key) { count += 1 }
            if count == 0 { throw CommandError.missing(key) }
            if !isPinned, try store.attributes(of: key)?.isPinned == true { stillPinned = 1 }
            return count
        }
        if stillPinned > 0 {
            Output.note(
                Render.count(stillPinned, "entry stays", "entries stay")
                    + " pinned by a tag: use 'cachectl unpin --tag'")
        }
        let verb = isPinned ? "pinned" : "unpinned"
        let number = Render.count(count, "entry", "entries")
        let text = selecting.onlyTag.map {
            "\(verb) the tag \(Key($0).text), which \(number) now \(count == 1 ? "has" : "have")"
        }
        try options.print(
            PinJSON(isPinned: isPinned, entries: count), orText: (text ?? "\(verb) \(number)") + "\n")
    }
}

/// `pin --json`.
private struct PinJSON: Encodable {
    let isPinned: Bool
    let entries: Int
}
