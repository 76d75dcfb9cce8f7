import ArgumentParser
import CachectlCore
import Larder

/// Options that select entries. Several together select what each of them selects, and so does one that is given twice.
struct SelectionOptions: ParsableArguments {
    @Option(help: "Entries whose key has this prefix.", transform: { Key($0) })
    var prefix: [Key] = []

    @Option(help: "Entries whose key is a URL of this host, with any scheme; NAME:PORT for one port.")
    var host: [String] = []

    @Option(help: ArgumentHelp("Entries with this tag; repeatable: with all of them.", valueName: "tag"))
    var tag: [String] = []

    @Option(
        help: ArgumentHelp("Entries that were put longer ago: 7d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var olderThan: [Duration] = []

    @Option(
        help: ArgumentHelp("Entries that were put since: 12h.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var newerThan: [Duration] = []

    @Option(
        help: ArgumentHelp("Entries that were neither put nor hit for this long: 30d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var unusedFor: [Duration] = []

    @Option(
        help: ArgumentHelp("Entries with a body of this length or more: 10MB.", valueName: "size"),
        transform: SizeArgument.parse)
    var atLeast: [ByteCount] = []

    @Option(
        help: ArgumentHelp("Entries with this body, by its SHA-256.", valueName: "hex"),
        transform: DigestArgument.parse)
    var content: [Digest] = []

    @Option(
        help: ArgumentHelp("Entries of this storage policy: permanent or session.", valueName: "policy"),
        transform: PolicyArgument.parse)
    var policy: [StoragePolicy] = []

    @Option(help: ArgumentHelp("Entries of this application version.", valueName: "name"))
    var appVersion: [String] = []

    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "Entries for which this is true: conditions with and, or, not and parentheses, such as "
                + "'(tag=a or tag=b) and not pinned'.",
            valueName: "expression"),
        transform: SelectionExpression.parse)
    var expression: [SelectionExpression] = []

    @Option(
        help: ArgumentHelp("Not the entry under this key; repeatable.", valueName: "key"), transform: { Key($0) })
    var except: [Key] = []

    @Flag(help: "Expired entries that are not pinned.")
    var expired = false

    @Flag(help: "Pinned entries.")
    var pinned = false

    @Flag(help: "Entries that are not pinned.")
    var unpinned = false

    @Flag(help: "Entries of policy session.")
    var session = false

    @Flag(help: "Bodies in progress, which are not listed otherwise: not complete yet, or left by a writer.")
    var incomplete = false

    func validate() throws {
        // A shell passes an empty argument for a variable that is not set.
        if prefix.contains(where: \.bytes.isEmpty) {
            throw ValidationError("--prefix is empty and would select everything. Use --all for every entry.")
        }
        if tag.contains("") { throw ValidationError("--tag is empty. Give the name of a tag.") }
        // What packages know of themselves; 'package' is for those.
        if let own = tag.first(where: { $0.hasPrefix("larder:") }) {
            throw ValidationError("--tag: '\(own)' is one of Larder's own tags. Use 'cachectl package'.")
        }
        if appVersion.contains("") { throw ValidationError("--app-version is empty. Give the name of a version.") }
        if host.contains("") { throw ValidationError("--host is empty. Give the name of a host.") }
        if let url = host.first(where: { $0.contains("/") }) {
            throw ValidationError("--host: '\(url)' is not a host. Give NAME or NAME:PORT, or a URL to --prefix.")
        }
        if except.contains(where: { $0.bytes.isEmpty }) {
            throw ValidationError("--except is empty. Give the key of an entry.")
        }
        if pinned, unpinned { throw ValidationError("Give either --pinned or --unpinned.") }
    }

    /// True if all entries but some are selected.
    var selectsAllButSome: Bool {
        var others = self
        others.except = []
        return !except.isEmpty && !others.isGiven
    }

    /// The one tag that is selected by, if nothing else is.
    var onlyTag: String? {
        var others = self
        others.tag = []
        return tag.count == 1 && !others.isGiven ? tag[0] : nil
    }

    /// True if an option selects anything.
    var isGiven: Bool { selection(at: Timestamp(microseconds: 0)) != nil }

    /// What the options select; nil if none is given.
    /// - Parameter now: the time of the store.
    func selection(at now: Timestamp) -> Selection? {
        var parts: [Selection] = tag.map { .tag($0) }
        parts += prefix.map { .prefix($0) }
        parts += host.map { .host($0) }
        parts += olderThan.map { .storedBefore(now - $0) }
        parts += newerThan.map { .storedSince(now - $0) }
        parts += unusedFor.map { .unusedSince(now - $0) }
        parts += atLeast.map { .atLeast($0) }
        parts += policy.map { .policy($0) }
        parts += content.map { .content($0) }
        parts += appVersion.map { .version($0) }
        parts += expression.map { $0.selection(at: now) }
        if expired { parts.append(.expired) }
        if pinned { parts.append(.pinned) }
        if unpinned { parts.append(!.pinned) }
        if session { parts.append(.policy(.session)) }
        if incomplete { parts.append(.incomplete) }
        if !except.isEmpty { parts.append(!.keys(Set(except))) }
        guard let first = parts.first else { return nil }
        return parts.dropFirst().reduce(first) { $0 && $1 }
    }
}
