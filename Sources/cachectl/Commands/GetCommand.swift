import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP
import SystemPackage

/// `get KEY`: the body, on standard output or in a file.
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write the body of an entry to standard output or a file.",
        discussion: """
            Exits 1 if there is no fresh entry, and 65 if an HTTP response is incomplete (--partial writes what is \
            stored). If a URL has several variants, --variant or --header selects one. Opens the store read-only, so \
            it does not count as an access (use touch for that). With --json and without --output the JSON contains \
            the body in Base64.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key

    @Option(
        name: [.short, .customLong("output")],
        help: ArgumentHelp("Write to this file, and replace it if it exists. - is standard output.", valueName: "file"))
    var output: String?

    @OptionGroup var choice: ResponseOptions

    @Flag(help: "Also accept an expired entry.")
    var expired = false

    @Flag(help: "Compare the body with its digest before it is written.")
    var check = false

    func run() throws {
        // What is written to a file is removed after a signal.
        if let output, output != "-" { Interruption.listen() }
        try options.withStore(.reading) { configuration in
            if check { configuration.verification = .always }
            // The command reports damage as an error.
            configuration.logger.logLevel = .critical
        } _: { store in
            let key = try choice.entryKey(for: key, in: store, includingExpired: expired)
            guard let entry = try store.get(key, includingExpired: expired), entry.isIntact else {
                throw try reason(key, store)
            }
            try choice.requireComplete(entry.attributes)
            let content = try StoredContent(entry, in: store)
            if let output, output != "-" {
                try FileOutput.replace(FilePath(output)) { file in
                    try content.forEach { piece in
                        try Interruption.check()
                        try file.writeAll(piece)
                    }
                }
                if options.json { try Output.write(JSON.text(json(entry, store))) }
            } else if options.json, output == nil {
                var bytes: [UInt8] = []
                try content.forEach { bytes.append(contentsOf: $0) }
                let body = JSON.base64(bytes)
                try Output.write(JSON.text(BodyJSON(entry: json(entry, store), bodyBase64: body)))
            } else {
                var sink = OutputSink(isForced: output != nil)
                try content.forEach { try sink.write($0) }
            }
        }
    }

    /// Why there is no body.
    private func reason(_ key: Key, _ store: Store) throws -> CommandError {
        let attributes = try store.attributes(of: key)
        if let expires = attributes?.expires, expires <= store.now, !expired {
            return .expired(key, "the entry under \(key) expired at \(expires): use --expired to get it")
        }
        // A damaged body that is part of its entry has no attributes.
        guard try attributes != nil || store.contains(key) else { return .missing(key) }
        return CommandError(.data, "the body of \(key) is damaged or missing: run 'cachectl verify --repair'", key: key)
    }

    private func json(_ entry: Entry, _ store: Store) throws -> EntryJSON {
        EntryJSON(try store.attributes(of: entry.key) ?? entry.attributes, try VersionNames(of: store))
    }
}

/// `get --json` without a file to write to.
private struct BodyJSON: Encodable {
    let entry: EntryJSON
    let bodyBase64: String
}
