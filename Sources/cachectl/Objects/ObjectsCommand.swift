#if LarderObjectsGRPC
    import ArgumentParser
    import CachectlCore
    import Larder
    import LarderGateway
    import LarderObjects
    import LarderObjectsGRPC
    import SystemPackage

    /// `objects`: the server for build tools.
    struct ObjectsCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "objects",
            abstract: "Run an object server for build tools.",
            discussion: """
                Bazel (--remote_cache=http://HOST:PORT), ccache (remote_storage), Gradle (HttpBuildCache), Turborepo \
                (TURBO_API), Nx (NX_SELF_HOSTED_REMOTE_CACHE_SERVER), sccache over WebDAV, and anything that gets and puts \
                files, on one store. Prints its addresses when it is ready. Without --users every client may read and \
                write, on addresses of this machine only unless --anonymous says so. SIGINT and SIGTERM shut down \
                gracefully, after the requests in progress; a second signal exits at once. SIGUSR1 and SIGHUP reopen the \
                access log and reload the certificate.
                """)

        @OptionGroup var options: StoreOptions
        @OptionGroup var settings: ObjectsSettings

        func run() throws {
            Interruption.listen()
            Reloading.listen()
            let configuration = try settings.configuration()
            let grpc = try settings.grpcConfiguration()
            try options.withStore(.creating, rebuildsIndex: true) {
                $0.logger = settings.logLevels.logger($0.logger)
            } _: { store in
                try Blocking.untilInterrupted { try await serve(store, configuration, grpc) }
            }
        }

        private func serve(
            _ store: Store, _ configuration: ObjectServerConfiguration, _ grpc: GRPCObjectServerConfiguration?
        ) async throws {
            var opening = options.configuration(.creating)
            opening.logger = settings.logLevels.logger(opening.logger)
            let keeper = StoreKeeper(at: options.path, opening, logger: configuration.connections.logger) {
                ObjectServer.cache(over: $0, configuration)
            }
            _ = keeper.use(store)
            let server: ObjectServer
            do {
                server = try await ObjectServer.start(configuration, store: store)
            } catch {
                throw CommandError(error)
            }
            let calls: GRPCObjectServer?
            do throws(GatewayError) {
                calls = if let grpc { try await GRPCObjectServer.start(grpc, beside: server) } else { nil }
            } catch {
                await server.stop(drain: .zero)
                throw CommandError(error)
            }
            let hasDefaultBudget: Bool
            do {
                if let budget = settings.budget { try store.setByteBudget(ofServer: budget) }
                hasDefaultBudget = try DefaultBudget.set(in: store, unless: settings.budget)
            } catch {
                await calls?.stop(drain: .zero)
                await server.stop(drain: .zero)
                throw error
            }
            try Announcement(
                plain: server.address, tls: server.tlsAddress, grpc: calls?.url, admin: server.adminAddress,
                try await store.statistics(),
                store.path.string, hasDefaultBudget: hasDefaultBudget
            )
            .write(asJSON: options.json)
            let watching = Task { await keeper.run { await server.use($0) } }
            var signals = Reloading.logSignalCount
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(100))
                guard Reloading.logSignalCount != signals else { continue }
                signals = Reloading.logSignalCount
                do {
                    try server.reload()
                } catch {
                    Output.note("not reloaded: \(error.message)")
                }
            }
            Interruption.endAtNext()
            let drain = settings.drain ?? .seconds(10)
            Output.note(
                "draining: waiting up to \(Render.elapsed(drain)) for requests in progress; another signal exits at once"
            )
            await Task {
                watching.cancel()
                await watching.value
                async let calls: Void? = calls?.stop(drain: drain)
                await server.stop(drain: drain)
                await calls
            }.value
            try keeper.close()
        }
    }
#endif
