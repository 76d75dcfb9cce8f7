import ArgumentParser
import CachectlCore
import Larder

/// Options that select entries. Several together select what each of them selects.
struct SelectionOptions: ParsableArguments {
    @Option(help: "Entries whose key has this prefix.", transform: { Key($0) })
    var prefix: Key?

    @Option(help: "Entries whose key is a URL of this host, with any scheme and port.")
    var host: String?

    @Option(help: ArgumentHelp("Entries with this tag; repeatable: with all of them.", valueName: "tag"))
    var tag: [String] = []

    @Option(
        help: ArgumentHelp("Entries that were put longer ago: 7d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var olderThan: Duration?

    @Option(
        help: ArgumentHelp("Entries that were put since: 12h.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var newerThan: Duration?

    @Option(
        help: ArgumentHelp("Entries that were neither put nor hit for this long: 30d.", valueName: "duration"),
        transform: DurationArgument.parseWithUnit)
    var unusedFor: Duration?

    @Option(
        help: ArgumentHelp("Entries with a body of this length or more: 10MB.", valueName: "size"),
        transform: SizeArgument.parse)
    var atLeast: ByteCount?

    @Option(
        help: ArgumentHelp("Not the entry under this key; repeatable.", valueName: "key"), transform: { Key($0) })
    var except: [Key] = []

    @Flag(help: "Expired entries.")
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
        if prefix?.bytes.isEmpty == true {
            throw ValidationError("--prefix is empty and would select everything. Use --all for every entry.")
        }
        if tag.contains("") { throw ValidationError("--tag is empty. Give the name of a tag.") }
        if host?.isEmpty == true { throw ValidationError("--host is empty. Give the name of a host.") }
        if except.contains(where: { $0.bytes.isEmpty }) {
            throw ValidationError("--except is empty. Give the key of an entry.")
        }
        if pinned, unpinned { throw ValidationError("Give either --pinned or --unpinned.") }
    }

    /// True if an option selects anything.
    var isGiven: Bool { selection(at: Timestamp(microseconds: 0)) != nil }

    /// What the options select; nil if none is given.
    /// - Parameter now: the time of the store.
    func selection(at now: Timestamp) -> Selection? {
        var parts: [Selection] = tag.map { .tag($0) }
        if let prefix { parts.append(.prefix(prefix)) }
        if let host { parts.append(.host(host)) }
        if let olderThan { parts.append(.storedBefore(now - olderThan)) }
        if let newerThan { parts.append(.storedSince(now - newerThan)) }
        if let unusedFor { parts.append(.unusedSince(now - unusedFor)) }
        if let atLeast { parts.append(.atLeast(atLeast)) }
        if expired { parts.append(.expired) }
        if pinned { parts.append(.pinned) }
        if unpinned { parts.append(!.pinned) }
        if session { parts.append(.policy(.session)) }
        if incomplete { parts.append(.incomplete) }
        if !except.isEmpty { parts.append(.allExcept(Set(except))) }
        guard let first = parts.first else { return nil }
        return parts.dropFirst().reduce(first) { $0 && $1 }
    }
}
