#if LarderObjectsGRPC
    import ArgumentParser
    import CachectlCore
    import Larder
    import LarderGateway
    import LarderObjects
    import LarderObjectsGRPC
    import SystemPackage

    /// The settings of `objects`. One that is not given is nil; the defaults are in the help.
    struct ObjectsSettings: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "Address and port to listen on; port 0 selects a free one. Default: 127.0.0.1:8080.",
                valueName: "address"),
            transform: AddressArgument.parse)
        var listen: AddressArgument?

        @Option(
            help: ArgumentHelp("Address and port for /metrics, /healthz and a status page.", valueName: "address"),
            transform: AddressArgument.parse)
        var admin: AddressArgument?

        @Option(
            help: ArgumentHelp("Address and port for TLS.", valueName: "address"), transform: AddressArgument.parse)
        var tlsListen: AddressArgument?

        @Option(
            help: ArgumentHelp(
                "Address and port for the Remote Execution API over gRPC; with --certificate over TLS.",
                valueName: "address"),
            transform: AddressArgument.parse)
        var grpcListen: AddressArgument?

        @Option(help: ArgumentHelp("Certificate chain in PEM.", valueName: "file"), completion: .file())
        var certificate: String?

        @Option(help: ArgumentHelp("Private key in PEM.", valueName: "file"), completion: .file())
        var key: String?

        @Option(
            help: ArgumentHelp("JSON file with users, their secrets and what they may do.", valueName: "file"),
            completion: .file())
        var users: String?

        @Option(
            help: ArgumentHelp(
                """
                What clients without credentials may do. Default: with --users none; otherwise write, on a loopback address.
                """,
                valueName: "right"))
        var anonymous: RightArgument?

        @Option(
            help: ArgumentHelp(
                "Byte budget of the store, or 'unlimited'. Default: its budget; without one, 80 % of the free disk space.",
                valueName: "size"),
            transform: SizeArgument.parseBudget)
        var budget: ByteCount?

        @Option(
            help: ArgumentHelp("Maximum size of an object. Default: 16GiB.", valueName: "size"),
            transform: SizeArgument.parse)
        var maxObject: ByteCount?

        @Option(
            help: ArgumentHelp(
                "How long a blob stays that a build counts on; 0 to keep none. Default: 3h.", valueName: "duration"),
            transform: DurationArgument.parse)
        var promise: Duration?

        @Flag(help: "Let later uploads replace the results of actions.")
        var replaceResults = false

        @Option(
            help: ArgumentHelp("Access log, one line per request; - is standard output.", valueName: "file"),
            completion: .file())
        var accessLog: String?

        @Option(help: ArgumentHelp("Format of the access log. Default: common.", valueName: "format"))
        var logFormat: LogFormatArgument?

        @Option(
            help: ArgumentHelp("Least severe messages to log on standard error. Default: warning.", valueName: "level"),
            completion: .list(LogLevelArgument.names), transform: LogLevelArgument.parse)
        var logLevel: LogLevelArgument?

        /// Of all messages of the server and its store.
        var logLevels: LogLevels {
            let levels = LogLevels(.warning)
            logLevel?.apply(to: levels)
            return levels
        }

        @Option(
            help: ArgumentHelp("Number of event loops, 1 ... 256. Default: one per core.", valueName: "n"),
            transform: { try CountArgument.parse($0, in: 1...256) })
        var threads: Int?

        @Option(
            help: ArgumentHelp("Maximum number of client connections. Default: 16384.", valueName: "n"),
            transform: { try CountArgument.parse($0, in: 1 ... .max) })
        var maxConnections: Int?

        @Option(
            help: ArgumentHelp(
                "Memory for data in transit; beyond it uploads are refused. Default: 512MiB.", valueName: "size"),
            transform: { try SizeArgument.parse($0, in: .mebibytes(1) ... .gibibytes(1_024)) })
        var memory: ByteCount?

        @Option(
            help: ArgumentHelp("Time for requests in progress at shutdown. Default: 10s.", valueName: "duration"),
            transform: DurationArgument.parseTimeout)
        var drain: Duration?

        func configuration() throws -> ObjectServerConfiguration {
            var configuration = ObjectServerConfiguration()
            let listen = listen ?? AddressArgument(host: "127.0.0.1", port: 8080)
            configuration.connections.host = listen.host
            configuration.connections.port = listen.port
            if let admin {
                configuration.connections.adminHost = admin.host
                configuration.connections.adminPort = admin.port
            }
            configuration.connections.tls = try ListenerArguments.tls(
                tlsListen, certificate: certificate, key: key, host: listen.host, http2: nil,
                isUsedElsewhere: grpcListen != nil)
            configuration.connections.accessLog = try ListenerArguments.accessLog(accessLog, logFormat)
            configuration.connections.logger = logLevels.logger(configuration.connections.logger)
            configuration.connections.eventLoops = threads
            configuration.connections.limits.bodyBytes = maxObject?.bytes ?? configuration.connections.limits.bodyBytes
            configuration.connections.limits.connections =
                maxConnections ?? configuration.connections.limits.connections
            if let memory { configuration.connections.limits.memoryBytes = Int(clamping: memory.bytes) }
            if let promise { configuration.promiseTime = promise }
            configuration.replacesResults = replaceResults
            configuration.access = try access(host: listen.host)
            return configuration
        }

        /// Nil without `--grpc-listen`.
        func grpcConfiguration() throws -> GRPCObjectServerConfiguration? {
            guard let grpcListen else { return nil }
            var configuration = GRPCObjectServerConfiguration()
            configuration.host = grpcListen.host
            configuration.port = grpcListen.port
            if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key go together.") }
            if let certificate, let key {
                configuration.certificate = .init(certificateFile: certificate, keyFile: key)
            }
            if let maxConnections { configuration.connections = maxConnections }
            if let memory { configuration.memoryBytes = max(8 << 20, Int(clamping: memory.bytes)) }
            return configuration
        }

        private func access(host: String) throws -> ObjectAccess {
            let users = try users.map { try UsersFile.read(FilePath($0)) } ?? []
            if let anonymous { return ObjectAccess(users: users, anonymous: anonymous.right) }
            if users.isEmpty, host != "127.0.0.1", host != "::1", host != "localhost" {
                throw ValidationError(
                    "Anyone who can reach \(host) could write. Give --users, or --anonymous read or write.")
            }
            return ObjectAccess(users: users, anonymous: users.isEmpty ? .write : .none)
        }
    }

    /// `--anonymous`
    struct RightArgument: ExpressibleByArgument {
        let right: ObjectAccess.Right

        init?(argument: String) {
            guard let right = ObjectAccess.Right(rawValue: argument) else { return nil }
            self.right = right
        }

        static var allValueStrings: [String] { ObjectAccess.Right.allCases.map(\.rawValue) }
        var defaultValueDescription: String { right.rawValue }
    }
#endif
