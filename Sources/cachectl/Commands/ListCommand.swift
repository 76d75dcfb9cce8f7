import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP

/// `ls`: the entries, one a line.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List entries, by key unless sorted.",
        discussion: """
            Without --sort the list is printed as it is read, whatever the size of the store. Flags: P pinned, X expired, \
            F body in a file of its own, S session, I incomplete: a part of an HTTP response. Braces hold the request fields that \
            select a response that varies. Lists of such responses, and the parts of incomplete ones, are left out unless --all is \
            given. Does not change the store.
            """)

    /// What `--sort` orders by.
    enum Order: String, ExpressibleByArgument, CaseIterable {
        /// Largest first.
        case size
        /// Oldest put first.
        case age
        /// Longest unused first: the order of displacement.
        case use
    }

    @OptionGroup var options: StoreOptions

    @Option(help: "Keys that start with this.", transform: { Key($0) })
    var prefix: Key?

    @Option(help: "Entries put with this tag.")
    var tag: String?

    @Option(help: "Largest, oldest or longest unused first.")
    var sort: Order?

    @Option(help: ArgumentHelp("Stop after so many entries.", valueName: "n"))
    var limit: Int?

    @Flag(help: "Lists of responses, which have no body, and the parts of incomplete ones, too.")
    var all = false

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit \(limit): give 1 or more.") }
    }

    func run() throws {
        let prefix = prefix
        // One of the two selects without a scan; the other is looked at entry by entry.
        let selection: Selection = tag.map { .tag($0) } ?? prefix.map { .prefix($0) } ?? .all
        func isListed(_ entry: Attributes) -> Bool {
            (prefix.map { entry.key.hasPrefix($0) } ?? true)
                && (all || !StoredKeys.isList(entry) && !StoredKeys.isPart(entry))
        }
        try options.withStore(.reading) { store in
            var printer = EntryPrinter(asJSON: options.json)
            if let sort {
                var entries: [Attributes] = []
                try store.forEach(selection) { if isListed($0) { entries.append($0) } }
                Self.sort(&entries, by: sort)
                for entry in entries.prefix(limit ?? .max) { try printer.print(entry) }
            } else {
                var count = 0
                do {
                    try store.forEach(selection) { entry in
                        guard isListed(entry) else { return }
                        try printer.print(entry)
                        count += 1
                        if count == limit { throw Enough() }
                    }
                } catch is Enough {}
            }
            try printer.finish()
        }
    }

    /// Ends a listing early.
    private struct Enough: Error {}

    private static func sort(_ entries: inout [Attributes], by order: Order) {
        switch order {
        case .size: entries.sort { $0.length > $1.length }
        case .age: entries.sort { $0.stored < $1.stored }
        case .use: entries.sort { $0.lastAccess < $1.lastAccess }
        }
    }
}

/// Entries as lines of a table or members of a JSON array, written as they come.
struct EntryPrinter {
    private static let widths = [8, 4, 4, 6, 5, 0, 0]
    private static let alignments: [Table.Alignment] = [.right, .right, .right, .right, .left, .left, .left]

    private let asJSON: Bool
    private let now = Timestamp.now
    private var array = JSONArrayWriter()
    private var hasHeader = false
    // A system call a line would be most of the time a long list takes.
    private var lines = ""

    init(asJSON: Bool) { self.asJSON = asJSON }

    mutating func print(_ entry: Attributes) throws {
        if asJSON { return try array.append(EntryJSON(entry, now: now)) }
        if !hasHeader {
            hasHeader = true
            lines += Table.line(["SIZE", "AGE", "USED", "HITS", "FLAGS", "KEY"], Self.widths, Self.alignments)
        }
        let isExpired = entry.expires.map { $0 <= now } ?? false
        let response = ResponseSummary(entry, now: now)
        let flags =
            (entry.isPinned ? "P" : "-") + (isExpired ? "X" : "-") + (entry.isInline ? "-" : "F")
            + (entry.storagePolicy == .session ? "S" : "-") + (response?.isComplete == false ? "I" : "-")
        let cells = [
            entry.length.description, Render.age(now - entry.stored), Render.age(now - entry.lastAccess),
            Render.count(entry.hitCount), flags, entry.key.text, Self.notes(entry, response),
        ]
        lines += Table.line(cells, Self.widths, Self.alignments)
        if lines.utf8.count > 32 << 10 { try flush() }
    }

    /// What tells variants apart, and the tags.
    private static func notes(_ entry: Attributes, _ response: ResponseSummary?) -> String {
        var notes: [String] = []
        if let list = VariantList(entry) { notes.append("{\(Render.count(list.keys.count, "variant", "variants"))}") }
        if let variant = response?.variant, !variant.isEmpty {
            notes.append("{" + variant.joined(separator: ", ") + "}")
        }
        if !entry.tags.isEmpty { notes.append("[" + entry.tags.map { Key($0).text }.joined(separator: ", ") + "]") }
        return notes.joined(separator: " ")
    }

    mutating func finish() throws {
        if asJSON { try array.finish() } else { try flush() }
    }

    private mutating func flush() throws {
        try Output.write(lines)
        lines = ""
    }
}
