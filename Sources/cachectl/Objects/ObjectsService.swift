#if LarderObjectsGRPC
    import CachectlCore
    import Larder
    import LarderHTTP
    import LarderObjects
    import LarderObjectsGRPC
    import LarderServer
    import Logging

    /// The object server as `objects` runs it, over HTTP and gRPC.
    struct ObjectsService: ServedService {
        let configuration: ObjectServerConfiguration
        let grpc: GRPCObjectServerConfiguration?

        var logger: Logger { configuration.connections.logger }

        func user(of store: Store) -> StoreHealth { ObjectServer.health(of: store, configuration) }

        func start(_ health: StoreHealth) async throws -> any RunningServer<StoreHealth> {
            let server: ObjectServer
            do {
                server = try await ObjectServer.start(configuration, health)
            } catch {
                throw CommandError(error)
            }
            do throws(GatewayError) {
                let calls: GRPCObjectServer? =
                    if let grpc { try await GRPCObjectServer.start(grpc, beside: server) } else { nil }
                return Running(server: server, calls: calls)
            } catch {
                await server.stop(drain: .zero)
                throw CommandError(error)
            }
        }

        private struct Running: RunningServer {
            let server: ObjectServer
            let calls: GRPCObjectServer?

            var addresses: Announcement.Addresses {
                Announcement.Addresses(
                    plain: server.address, tls: server.tlsAddress, grpc: calls?.url, admin: server.adminAddress)
            }

            func use(_ health: StoreHealth) async { await server.use(health) }
            func reopenAccessLog() throws(GatewayError) -> Bool { try server.reopenAccessLog() }
            func reloadCertificate() throws(GatewayError) -> Bool { try server.reloadCertificate() }

            func stop(drain: Duration) async {
                async let calls: Void? = calls?.stop(drain: drain)
                await server.stop(drain: drain)
                await calls
            }
        }
    }
#endif
