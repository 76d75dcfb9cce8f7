import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import Logging
import SystemPackage
import TestSupport
import Testing

/// A store in trouble under a running gateway: the origin answers, the operator sees it, and it ends by itself.
struct StoreKeeperTests {
    private struct Kept {
        let gateway: Gateway
        let keeper: StoreKeeper
        let transport: ScriptedTransport
        let path: FilePath

        var port: Int { gateway.address?.port ?? 0 }

        func status(_ target: String) async throws -> String {
            let response = try await exchange(port, get(target))
            #expect(response.status == 200)
            return response["Cache-Status"] ?? ""
        }

        func health() async throws -> RawResponse {
            try await exchange(gateway.adminAddress?.port ?? 0, get("/healthz"))
        }
    }

    private func withKeeper(_ body: (Kept) async throws -> Void) async throws {
        try await withDirectory { directory in
            let path = directory.appending("store")
            let transport = ScriptedTransport { request in .text(request.head.path ?? "", fresh) }
            var logger = Logger(label: "test")
            logger.logLevel = .critical
            var storeConfiguration = Configuration()
            storeConfiguration.logger = logger
            let keeper = StoreKeeper(at: path, storeConfiguration, logger: logger) { [logger] store in
                var caching = HTTPCacheConfiguration()
                caching.caching = .gateway
                caching.logger = logger
                caching.retries = .none
                return HTTPCache(store: store, transport: transport, configuration: caching)
            }
            var configuration = GatewayConfiguration()
            configuration.eventLoops = 1
            configuration.adminPort = 0
            configuration.routes.otherwise = try OriginServer("http://127.0.0.1:1")
            let gateway = try await Gateway.start(configuration, cache: try keeper.open())
            do {
                try await body(Kept(gateway: gateway, keeper: keeper, transport: transport, path: path))
            } catch {
                await gateway.stop(drain: .zero)
                throw error
            }
            await gateway.stop(drain: .seconds(5))
            await keeper.cache?.drain()
            try verify(try #require(keeper.store))
            try keeper.close()
        }
    }

    @Test func aRemovedDirectoryIsMadeAgain() async throws {
        try await withKeeper { kept in
            _ = try await kept.status("/a")
            try await #expect(kept.status("/a").contains("hit"))
            try await #expect(kept.health().status == 200)
            TestFiles.remove(kept.path)
            let health = try await kept.health()
            #expect(health.status == 503)
            #expect(health.text.contains("was removed"))
            try await #expect(kept.status("/b").contains("fwd=uri-miss"))
            let metrics = try await exchange(kept.gateway.adminAddress?.port ?? 0, get("/metrics"))
            #expect(metrics.text.contains("larder_store_trouble{work=\"place\"} 1"))

            await kept.keeper.look(kept.gateway)
            try await #expect(kept.health().status == 200)
            try await #expect(kept.status("/a").contains("stored"))
            try await #expect(kept.status("/a").contains("hit"))
        }
    }

    /// - Parameter isSeen: whether the keeper looked between the change and the removal.
    @Test(arguments: [true, false]) func aStoreMadeAgainHasTheBudgetOfTheOneThatWasThere(isSeen: Bool) async throws {
        try await withKeeper { kept in
            let budget = Budget(bytes: .megabytes(20), entries: 1_000)
            try await kept.keeper.store?.perform { try $0.setBudget(budget) }
            if isSeen { await kept.keeper.look(kept.gateway) }
            TestFiles.remove(kept.path)
            await kept.keeper.look(kept.gateway)
            try #expect(kept.keeper.store?.budget() == budget)
            let metrics = try await exchange(kept.gateway.adminAddress?.port ?? 0, get("/metrics"))
            #expect(metrics.text.contains("larder_store_budget_bytes 20000000"))
        }
    }

    @Test func aDirectoryOfTheStoreIsMadeAgain() async throws {
        try await withKeeper { kept in
            TestFiles.remove(kept.path.appending("staging"))
            let health = try await kept.health()
            #expect(health.status == 503 && health.text.contains("files of"))
            await kept.keeper.look(kept.gateway)
            try await #expect(kept.health().status == 200)
            try await kept.keeper.store?.put([UInt8](repeating: 1, count: 1 << 20), for: "large")
        }
    }

    @Test func aDamagedIndexIsRebuilt() async throws {
        try await withKeeper { kept in
            for number in 0..<200 { _ = try await kept.status("/\(number)") }
            try await kept.keeper.store?.perform { try $0.flush() }
            // Bytes of another origin where the pages of the index are.
            let index = kept.path.appending("index").appending("data.mdb")
            let file = try FileDescriptor.open(index, .readWrite)
            let junk = [UInt8](repeating: 0xA5, count: 4_096)
            for page in 2..<40 { try file.writeAll(toAbsoluteOffset: Int64(page) * 4_096, junk) }
            try file.close()
            for number in 0..<20 { _ = try await kept.status("/\(number)") }
            let health = try await kept.health()
            #expect(health.status == 503)
            await kept.keeper.look(kept.gateway)
            try await #expect(kept.health().status == 200)
            _ = try await kept.status("/new")
            try await #expect(kept.status("/new").contains("hit"))
        }
    }
}
