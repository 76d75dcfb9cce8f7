import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOCore
import Locks
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// A gateway for a test, and what stands around it.
struct Setting {
    let gateway: Gateway
    let cache: HTTPCache
    let store: Store
    let time: TestTime

    var port: Int { gateway.address?.port ?? 0 }
    var adminPort: Int { gateway.adminAddress?.port ?? 0 }

    /// Asks for a body until it has been asked for often enough to be in memory, which is for what is committed.
    func askOften(_ target: String) async throws {
        _ = try await exchange(port, get(target))
        try await store.perform { try $0.flush() }
        for _ in 0..<2 { _ = try await exchange(port, get(target)) }
    }

    /// Waits until a body that was requested again is in the store's memory.
    func waitForSharedBody() async throws {
        try await waitWhile { try await !hasSharedBody() }
    }

    /// Whether a body is held in memory.
    func hasSharedBody() async throws -> Bool {
        try await store.perform { try $0.statistics().memoryTier.count } > 0
    }

    /// The one file of a body in the store.
    func bodyFile() throws -> FilePath {
        let blobs = store.path.appending("blobs")
        let names = TestFiles.tree(blobs).filter { !TestFiles.isDirectory(blobs.appending($0)) }
        return blobs.appending(try #require(names.first))
    }

    func connect() async throws -> RawClient { try await RawClient.connect(to: port) }
}

/// Runs `body` with a gateway that forwards to any host through a transport of the test's; afterwards stops it and
/// verifies the store.
func withGateway(
    transport: any Transport, storeMemory: ByteCount = .mebibytes(32), compression: Compression = .off,
    encryption: EncryptionKey? = nil,
    _ change: (inout GatewayConfiguration) throws -> Void = { _ in },
    caching: (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Setting) async throws -> Void
) async throws {
    try await withStore(
        configuration: .testing {
            $0.memoryLimit = storeMemory
            $0.compression = compression
            if let encryption { $0.encryption = encryption }
        }
    ) { store in
        var cacheConfiguration = HTTPCacheConfiguration()
        cacheConfiguration.caching = .gateway
        cacheConfiguration.viaName = "test-gateway"
        cacheConfiguration.logger.logLevel = .critical
        cacheConfiguration.retries = .none
        caching(&cacheConfiguration)
        var configuration = GatewayConfiguration()
        configuration.eventLoops = 1
        configuration.logger.logLevel = .critical
        configuration.routes.otherwise = try OriginServer("http://127.0.0.1:1")
        let time = TestTime()
        configuration.time = time
        try change(&configuration)
        let cache = HTTPCache(
            store: store, transport: RoutedTransport(configuration.routes, over: transport),
            configuration: cacheConfiguration)
        let gateway = try await Gateway.start(configuration, cache: cache)
        let setting = Setting(gateway: gateway, cache: cache, store: store, time: time)
        do {
            try await body(setting)
        } catch {
            await gateway.stop(drain: .zero)
            await cache.drain()
            throw error
        }
        await gateway.stop(drain: .seconds(5))
        await cache.drain()
    }
}

/// Runs `body` with a gateway in front of an origin, all over sockets; afterwards stops both, and verifies the store.
func withOrigin(
    _ responder: @escaping TestOrigin.Responder, caching: (inout HTTPCacheConfiguration) -> Void = { _ in },
    _ body: (Setting, TestOrigin) async throws -> Void
) async throws {
    let origin = try await TestOrigin.start(responder)
    let transport = NIOTransport.patient
    do {
        try await withGateway(
            transport: transport,
            {
                $0.routes.otherwise = try OriginServer(origin.url)
                $0.adminPort = 0
            }, caching: caching
        ) { try await body($0, origin) }
    } catch {
        await transport.close()
        await origin.stop()
        throw error
    }
    await transport.close()
    await origin.stop()
    #expect(origin.history.failures.isEmpty)
}

/// Runs `body` with a gateway and a client whose request has reached the origin, which answers "late" when the gate
/// opens.
func withRequestThatWaits(_ body: (Setting, RawClient, Gate) async throws -> Void) async throws {
    let gate = Gate()
    let transport = ScriptedTransport { _ in
        try? await gate.wait()
        return .text("late")
    }
    try await withGateway(transport: transport) { setting in
        let client = try await setting.connect()
        try await client.send(get("/"))
        await gate.arrival()
        try await body(setting, client, gate)
    }
}

extension NIOTransport {
    /// Keeps idle connections for as long as a test may take on a busy machine.
    static var patient: NIOTransport { NIOTransport(Configuration(idleTimeout: .seconds(600))) }
}

extension ScriptedTransport {
    /// Takes all content of a request before it answers.
    static func takingContent(_ answer: String = "complete") -> ScriptedTransport {
        ScriptedTransport { request throws(TransportError) in
            let pull = request.body?.makePull()
            do {
                while try await pull?() != nil {}
            } catch {
                throw TransportError(.requestBodyFailed, mayHaveBeenSeen: true, "\(error)")
            }
            return .text(answer)
        }
    }
}

/// Time that passes when a test says so.
final class TestTime: ServerTime {
    private let nanoseconds = Atomic<UInt64>(1_000_000_000_000)

    func now() -> NIODeadline { .uptimeNanoseconds(nanoseconds.load(ordering: .relaxed)) }
    /// 2026-11-21T14:08:10Z
    func wallSeconds() -> Int64 { 1_795_270_090 }
    var ticks: Bool { false }

    func advance(seconds: Int) { nanoseconds.add(UInt64(seconds) * 1_000_000_000, ordering: .relaxed) }
}

let fresh: HTTPFields = [.cacheControl: "max-age=3600"]

extension Counter {
    /// Returns when the number has not grown for a while: for what has to stand still, there is no event to wait for.
    /// The pauses are longer on a busy machine. If it returns too early all the same, a test of an upper bound can miss
    /// a bug, but does not fail.
    func stands() async {
        var last = -1
        while value != last {
            last = value
            for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(5)) }
        }
    }
}
