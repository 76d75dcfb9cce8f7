import ArgumentParser
import CachectlCore
import Larder

/// `touch KEY`: counts as an access without reading the body.
struct TouchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "touch",
        abstract: "Mark an entry as used, and optionally set its lifetime.",
        discussion: "Exits 1 if there is no entry under KEY.")

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key

    @Option(
        help: ArgumentHelp("New lifetime, from now: 12h, 7d, never.", valueName: "duration"),
        transform: DurationArgument.parseLifetime)
    var lifetime: Lifetime?

    func run() throws {
        let (entry, versions) = try options.withStore(.changing) { store in
            let keys = try StoredVariants.keys(under: key, in: store)
            for key in keys.dropFirst() { try store.touch(key, lifetime: lifetime) }
            guard try store.touch(key, lifetime: lifetime), let entry = try store.attributes(of: key) else {
                throw CommandError.missing(key)
            }
            return (entry, try VersionNames(of: store))
        }
        let expiry = entry.expires.map { "expires \($0)" } ?? "never expires"
        try options.print(EntryJSON(entry, versions), orText: "touched \(key), \(expiry)\n")
    }
}
