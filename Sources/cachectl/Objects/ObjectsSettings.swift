#if LarderObjectsGRPC
    import ArgumentParser
    import CachectlCore
    import Larder
    import LarderObjects
    import LarderObjectsGRPC
    import SystemPackage

    /// The settings of `objects`, with those of every server. One that is not given is nil; the help has the defaults.
    struct ObjectsSettings: ParsableArguments {
        @OptionGroup var server: ServerSettings

        @Option(
            help: ArgumentHelp(
                "Address and port for the Remote Execution API over gRPC; with --certificate over TLS.",
                valueName: "address"),
            transform: AddressArgument.parse)
        var grpcListen: AddressArgument?

        @Option(
            help: ArgumentHelp("JSON file with users, their secrets and their rights.", valueName: "file"),
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
            help: ArgumentHelp("Maximum size of an object. Default: 16GiB.", valueName: "size"),
            transform: SizeArgument.parse)
        var maxObject: ByteCount?

        @Option(
            help: ArgumentHelp(
                "How long to keep a blob that a build relies on; 0 to keep none. Default: 3h.", valueName: "duration"),
            transform: DurationArgument.parse)
        var promise: Duration?

        @Flag(help: "Let later uploads replace the results of actions.")
        var replaceResults = false

        func configuration(_ levels: LogLevels) throws -> ObjectServerConfiguration {
            var configuration = ObjectServerConfiguration()
            try server.configure(&configuration.connections, levels, hasOtherTLS: grpcListen != nil)
            configuration.connections.limits.bodyBytes = maxObject?.bytes ?? configuration.connections.limits.bodyBytes
            if let promise { configuration.promiseTime = promise }
            configuration.replacesResults = replaceResults
            configuration.access = try access(host: configuration.connections.host)
            return configuration
        }

        /// Nil without `--grpc-listen`.
        func grpcConfiguration() throws -> GRPCObjectServerConfiguration? {
            guard let grpcListen else { return nil }
            var configuration = GRPCObjectServerConfiguration()
            configuration.host = grpcListen.host
            configuration.port = grpcListen.port
            let (certificate, key) = (server.certificate, server.key)
            if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key go together.") }
            if let certificate, let key {
                configuration.certificate = .init(certificateFile: certificate, keyFile: key)
            }
            if let maxConnections = server.maxConnections { configuration.connections = maxConnections }
            if let memory = server.memory { configuration.memoryBytes = max(8 << 20, Int(clamping: memory.bytes)) }
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
