import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP

/// `ls`: the entries, one per line.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List entries, by default in the order of their keys.",
        discussion: """
            Options that select entries can be combined: an entry is listed if each of them selects it. Without --sort, \
            entries are printed as they are read, and memory use does not depend on the size of the \
            store. Flags: P pinned, X expired, F body in its own file, S session, I incomplete HTTP response. Braces \
            hold the request fields that select a variant. Lists of variants, the parts of incomplete responses, and \
            the records of packages are shown only with --all. Does not change the store.
            """)

    /// What `--sort` orders by.
    enum Order: String, ExpressibleByArgument, CaseIterable {
        /// Largest first.
        case size
        /// Least recently put first.
        case age
        /// Least recently used first: the order of displacement.
        case use

        func order(_ entries: inout [Attributes], countingParts: Bool) {
            switch self {
            case .size:
                let sized = entries.map { (size: $0.shownSize(countingParts: countingParts), entry: $0) }
                entries = sized.sorted { $0.size > $1.size }.map(\.entry)
            case .age: entries.sort { $0.stored < $1.stored }
            case .use: entries.sort { $0.lastAccess < $1.lastAccess }
            }
        }
    }

    @OptionGroup var options: StoreOptions

    @OptionGroup var selecting: SelectionOptions

    @Option(help: "Sort by size (largest first), age (oldest first) or use (least recently used first).")
    var sort: Order?

    @Option(help: ArgumentHelp("Maximum number of entries to list.", valueName: "n"))
    var limit: Int?

    @Flag(help: "Also list the lists of variants, the parts of incomplete responses, and the records of packages.")
    var all = false

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit: \(limit) is out of range. Use 1 or more.") }
    }

    func run() throws {
        try options.withStore(.reading) { store in
            let listed = ListedEntries(store, selecting.selection(at: store.now), isEverything: all)
            var printer = EntryPrinter(
                asJSON: options.json, versions: try VersionNames(of: store), now: store.now, listsParts: all)
            if let sort {
                var entries: [Attributes] = []
                try listed.forEach { entries.append($0) }
                sort.order(&entries, countingParts: !all)
                for entry in entries.prefix(limit ?? .max) { try printer.print(entry) }
            } else {
                var count = 0
                do {
                    try listed.forEach { entry in
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
}

/// Prints entries as they come, as lines of a table or members of a JSON array.
struct EntryPrinter {
    private static let widths = [8, 4, 4, 6, 5, 0, 0]
    private static let alignments: [Table.Alignment] = [.right, .right, .right, .right, .left, .left, .left]

    private let asJSON: Bool
    private let versions: VersionNames
    /// The time of the store, for ages; responses have the time of their own.
    private let now: Timestamp
    /// Whether parts of responses have lines of their own.
    private let listsParts: Bool
    private var array = JSONArrayWriter()
    private var hasHeader = false
    // Lines are collected: a system call for each would take most of the time of a long list.
    private var lines = ""

    init(asJSON: Bool, versions: VersionNames, now: Timestamp, listsParts: Bool) {
        self.asJSON = asJSON
        self.versions = versions
        self.now = now
        self.listsParts = listsParts
    }

    mutating func print(_ entry: Attributes) throws {
        if asJSON { return try array.append(EntryJSON(entry, versions)) }
        if !hasHeader {
            hasHeader = true
            lines += Table.line(["SIZE", "AGE", "USED", "HITS", "FLAGS", "KEY"], Self.widths, Self.alignments)
        }
        let isExpired = entry.expires.map { $0 <= now } ?? false
        let response = ResponseSummary(entry, now: .now)
        let flags =
            (entry.isPinned ? "P" : "-") + (isExpired ? "X" : "-") + (entry.isInline ? "-" : "F")
            + (entry.storagePolicy == .session ? "S" : "-") + (response?.isComplete == false ? "I" : "-")
        let size = entry.shownSize(countingParts: !listsParts)
        let cells = [
            size.description, Render.age(now - entry.stored), Render.age(now - entry.lastAccess),
            Render.count(entry.hitCount), flags, entry.key.text, Self.notes(entry, response),
        ]
        lines += Table.line(cells, Self.widths, Self.alignments)
        if lines.utf8.count > 32 << 10 { try flush() }
    }

    /// The request fields that select a variant, and the tags.
    private static func notes(_ entry: Attributes, _ response: ResponseSummary?) -> String {
        var notes: [String] = []
        if let list = VariantList(entry) { notes.append("{\(Render.count(list.keys.count, "variant", "variants"))}") }
        if let variant = response?.variant, !variant.isEmpty {
            notes.append("{" + variant.joined(separator: ", ") + "}")
        }
        if !entry.tags.isEmpty { notes.append("[" + entry.tags.joined(separator: ", ") + "]") }
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
