import ArgumentParser
import CachectlCore
import Larder

/// `pin`: keeps entries out of displacement.
struct PinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keep an entry, or every entry of a tag, out of displacement.",
        discussion: "A pinned tag holds for entries put later, too. Exits 1 if there is no entry under KEY.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: true, options) }
}

/// `unpin`: takes `pin` back.
struct UnpinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Let displacement have an entry, or the entries of a tag, again.",
        discussion: "Entries that are pinned in another way too stay so. Exits 1 if there is no entry under KEY.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: false, options) }
}

/// What is pinned or not: one entry, or a tag.
struct PinSubject: ParsableArguments {
    @Argument(help: "Key of one entry.", transform: { Key($0) })
    var key: Key?

    @Option(help: "Every entry with this tag, those put later included.")
    var tag: String?

    func validate() throws {
        if (key == nil) == (tag == nil) { throw ValidationError("Give either KEY or --tag.") }
    }

    func set(isPinned: Bool, _ options: StoreOptions) throws {
        let count = try options.withStore(.changing) { store in
            if let tag { return isPinned ? try store.pin(tag: tag) : try store.unpin(tag: tag) }
            guard let key else { return 0 }
            var count = 0
            for key in try StoredVariants.keys(under: key, in: store)
            where isPinned ? try store.pin(key) : try store.unpin(key) { count += 1 }
            if count == 0 { throw CommandError.missing(key) }
            return count
        }
        try options.print(
            PinJSON(isPinned: isPinned, entries: count),
            orText: "\(isPinned ? "pinned" : "unpinned") \(Render.count(count, "entry", "entries"))\n")
    }
}

/// `pin --json`.
private struct PinJSON: Encodable {
    let isPinned: Bool
    let entries: Int
}
