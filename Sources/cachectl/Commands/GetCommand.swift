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
            Exits 1 if there is no fresh entry, and 65 if only a part of an HTTP response is stored (--partial takes it). Of \
            a URL whose responses vary --variant or --header chooses one. Opens the store read-only: it does not count as an \
            access (use touch). With --json and no --output the body is part of the object, as Base64.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of the entry.", transform: { Key($0) })
    var key: Key

    @Option(
        name: [.short, .customLong("output")],
        help: ArgumentHelp("Write here; replaces the file. - is standard output.", valueName: "file"))
    var output: String?

    @OptionGroup var choice: ResponseOptions

    @Flag(help: "Take an entry that has expired, too.")
    var expired = false

    @Flag(help: "Compare the body with its digest before writing it.")
    var check = false

    func run() throws {
        try options.withStore(.reading) { configuration in
            if check { configuration.verification = .always }
            // Damage is reported as an error of the command.
            configuration.logger.logLevel = .critical
        } _: { store in
            let key = try choice.entryKey(for: key, in: store, includingExpired: expired)
            guard let entry = try store.get(key, includingExpired: expired) else { throw try reason(key, store) }
            try choice.requireComplete(entry.attributes)
            let content = try StoredContent(entry) { try store.get($0, includingExpired: true) }
            if let output, output != "-" {
                try FileOutput.replace(FilePath(output)) { file in
                    try content.forEach { try file.writeAll($0) }
                }
                if options.json { try Output.write(JSON.text(EntryJSON(try attributes(entry, store)))) }
            } else if options.json, output == nil {
                var bytes: [UInt8] = []
                try content.forEach { bytes.append(contentsOf: $0) }
                let body = JSON.base64(bytes)
                try Output.write(JSON.text(BodyJSON(entry: EntryJSON(try attributes(entry, store)), bodyBase64: body)))
            } else {
                var sink = BodySink(isForced: output != nil)
                try content.forEach { try sink.write($0) }
            }
        }
    }

    /// Why there is no body.
    private func reason(_ key: Key, _ store: Store) throws -> CommandError {
        guard let entry = try store.attributes(of: key) else { return .missing(key) }
        if let expires = entry.expires, expires <= .now, !expired {
            return .expired(key, "the entry under \(key) expired at \(expires): --expired takes it all the same")
        }
        return CommandError(.data, "the body of \(key) is damaged or gone: run 'cachectl verify --repair'", key: key)
    }

    private func attributes(_ entry: Entry, _ store: Store) throws -> Attributes {
        try store.attributes(of: entry.key) ?? entry.attributes
    }
}

/// `get --json` without a file to write to.
private struct BodyJSON: Encodable {
    let entry: EntryJSON
    let bodyBase64: String
}
