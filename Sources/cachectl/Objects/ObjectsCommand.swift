#if LarderObjectsGRPC
    import ArgumentParser
    import CachectlCore

    /// `objects`: the server for build tools.
    struct ObjectsCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "objects",
            abstract: "Run an object server for build tools.",
            discussion: """
                Bazel (--remote_cache=http://HOST:PORT), ccache (remote_storage), Gradle (HttpBuildCache), Turborepo \
                (TURBO_API), Nx (NX_SELF_HOSTED_REMOTE_CACHE_SERVER), sccache over WebDAV, and anything that gets and puts \
                files, on one store. Prints its addresses when it is ready. Without --users every client may read and \
                write, but the server listens only on loopback addresses unless you give --anonymous. SIGINT and \
                SIGTERM shut down gracefully, after the requests in progress; a second signal exits immediately. \
                SIGUSR1 reopens the access log. SIGHUP also reloads the certificate.
                """)

        @OptionGroup var options: StoreOptions
        @OptionGroup var settings: ObjectsSettings

        func run() throws {
            ServerProgram.listen()
            let levels = settings.server.logLevels
            let service = ObjectsService(
                configuration: try settings.configuration(levels), grpc: try settings.grpcConfiguration())
            try ServerProgram(options: options, settings: settings.server, levels: levels).run(service)
        }
    }
#endif
