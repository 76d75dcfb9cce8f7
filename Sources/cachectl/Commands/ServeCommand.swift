import ArgumentParser
import CachectlCore
import HTTPCaching
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Logging
import NIOCore
import SystemPackage

/// `serve`: the caching gateway.
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a caching gateway in front of origin servers, or a caching proxy.",
        discussion: """
            A shared cache (RFC 9111) between clients and --origin, with HTTP/1.1, and with TLS and HTTP/2 on \
            --tls-listen. Prints its addresses when it is ready. PURGE removes the responses of a URL, or of many with \
            Purge-Prefix or Purge-Tag; it is accepted from loopback, or with --purge-token. SIGINT and SIGTERM shut \
            down gracefully, after the responses in progress; a second signal exits immediately. SIGUSR1 reopens the \
            access log. SIGHUP also reloads the certificate and the settings: a new budget and new log levels \
            apply immediately. Settings can be in a JSON file (--config), under the names of the flags in camel case; \
            flags take precedence. --check tests them.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var settings: ServeSettings

    @Option(help: ArgumentHelp("JSON file with settings.", valueName: "file"), completion: .file())
    var config: String?

    @Flag(help: "Check settings, certificate and key, and exit.")
    var check = false

    func run() throws {
        ServerProgram.listen()
        guard let config else { return try run(file: nil) }
        let file = try SettingsFile(FilePath(config))
        let flags = CommandLine.arguments.dropFirst(2)
        // The parser uses the last value, so flags take precedence; but it would join repeatable settings.
        let given = settings
        let arguments = file.arguments { name in
            name == "origin" && !given.origin.isEmpty || name == "tunnelPort" && !given.tunnelPort.isEmpty
                || name == "foldEncoding" && !given.foldEncoding.isEmpty
                || name == "keepField" && !given.keepField.isEmpty
        }
        try ServeCommand.parse(arguments + flags).run(
            file: file,
            fixed: Set(
                (given.server.budget == nil ? [] : ["budget"]) + (given.server.logLevel == nil ? [] : ["logLevel"])))
    }

    /// - Parameters:
    ///   - file: the file with settings, if there is one.
    ///   - fixed: settings that the command line gives, so that a change in the file has no effect.
    private func run(file: SettingsFile?, fixed: Set<String> = []) throws {
        let setup = try ServeSetup(settings)
        guard !check else { return try report(on: setup) }
        Self.warn(ofKey: setup)
        let source = file.map { Reloading.Source(path: FilePath(config ?? ""), file: $0, fixed: fixed) }
        try ServerProgram(options: options, settings: settings.server, levels: setup.levels)
            .run(CachingService(setup), source)
    }

    /// `--check`: opens neither a port nor the store.
    private func report(on setup: ServeSetup) throws {
        do {
            try Gateway.check(setup.gateway)
        } catch {
            throw CommandError(error)
        }
        _ = try options.flags.key()
        Self.warn(ofKey: setup)
        let text = setup.destinations.map { "origin for \($0)\n" }.joined()
        try options.print(SettingsJSON(origins: setup.destinations), orText: text + "the settings are valid\n")
    }

    private static func warn(ofKey setup: ServeSetup) {
        var status = stat()
        guard let path = setup.gateway.tls?.keyFile, FilePath(path).withPlatformString({ stat($0, &status) }) == 0,
            status.st_mode & S_IROTH != 0
        else { return }
        setup.gateway.logger.warning(
            "every user of this machine can read the private key: change its permissions to 600",
            metadata: ["category": "settings", "path": "\(path)"])
    }
}

/// `serve --check --json`.
private struct SettingsJSON: Encodable {
    let origins: [String]
}
