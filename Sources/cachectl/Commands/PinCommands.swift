import ArgumentParser
import CachectlCore
import Larder

/// `pin`: protects entries from displacement.
struct PinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Protect an entry, or all entries with a tag, from displacement.",
        discussion: "A pinned tag also protects entries that are put later. Exits 1 if there is no entry under KEY.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: true, options) }
}

/// `unpin`: undoes `pin`.
struct UnpinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Unpin an entry, or all entries with a tag.",
        discussion: """
            An entry can be pinned by its key and by several tags. It stays pinned until all of them are unpinned. Exits 1 \
            if there is no entry under KEY.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var subject: PinSubject

    func run() throws { try subject.set(isPinned: false, options) }
}

/// What to pin or unpin: one entry, or a tag.
struct PinSubject: ParsableArguments {
    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key?

    @Option(help: "All entries with this tag, including those that are put later.")
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
