import CachectlCore
import HTTPCaching
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Locks

/// The second half of the demo: a gateway in front of a web server, and clients of it, over loopback.
final class WebDemo: Sendable {
    /// The results of the clients.
    struct Figures: Sendable {
        var requests = 0
        var hits = 0
        var bytes: Int64 = 0
        /// Bodies that differ from the file.
        var wrong = 0
        var failed = 0
        /// The durations of hits in milliseconds.
        var hitTimes: [Float] = []
    }

    private let store: Store
    private let corpus: Corpus
    private let order: SkewedOrder
    let origin: DemoOrigin
    private let figures = Mutex(Figures())
    private let isOver = Atomic<Bool>(false)

    init(_ store: Store, _ corpus: Corpus) {
        self.store = store
        self.corpus = corpus
        order = SkewedOrder(count: corpus.files.count)
        origin = DemoOrigin(corpus)
    }

    var snapshot: Figures { figures.withLock { $0 } }

    /// Starts the origin and the gateway.
    func start() async throws -> Running {
        let port = try await origin.start()
        var gateway = GatewayConfiguration()
        gateway.logger.logLevel = .error
        gateway.adminPort = 0
        gateway.routes = Routes(otherwise: try OriginServer("http://127.0.0.1:\(port)"))
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        configuration.viaName = "larder-demo"
        configuration.logger.logLevel = .error
        let transport = NIOTransport()
        let cache = HTTPCache(
            store: store, transport: RoutedTransport(gateway.routes, over: transport), configuration: configuration)
        return Running(gateway: try await Gateway.start(gateway, cache: cache), cache: cache, transport: transport)
    }

    /// What must be stopped at the end.
    struct Running: Sendable {
        let gateway: Gateway
        let cache: HTTPCache
        let transport: NIOTransport

        var address: String { gateway.address.map { "http://127.0.0.1:\($0.port ?? 0)" } ?? "" }
        var admin: String { gateway.adminAddress.map { "http://127.0.0.1:\($0.port ?? 0)" } ?? "" }

        func stop() async {
            await gateway.stop(drain: .seconds(2))
            await cache.drain()
            await transport.close()
        }
    }

    /// Runs clients until `end()`.
    func run(clients: Int, against running: Running) async {
        let transport = NIOTransport()
        let authority = String(running.address.dropFirst("http://".count))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<clients {
                group.addTask { [self] in
                    var random = RandomBytes(seed: UInt64(number) + 100)
                    while !isOver.load(ordering: .relaxed) {
                        await ask(for: order.next(&random), authority: authority, transport)
                    }
                }
            }
        }
        await transport.close()
    }

    /// Lets the clients finish.
    func end() { isOver.store(true, ordering: .relaxed) }

    private func ask(for index: Int, authority: String, _ transport: NIOTransport) async {
        let head = HTTPRequest(method: .get, scheme: "http", authority: authority, path: corpus.path(index))
        let start = ContinuousClock.now
        do {
            let response = try await transport.send(TransportRequest(head: head))
            var body: [UInt8] = []
            while let piece = try await response.body.next() { body += piece }
            let elapsed = ContinuousClock.now - start
            let status = response.head.headerFields[HTTPField.Name("Cache-Status")!] ?? ""
            let expected = corpus.contents(index)
            let isWrong = response.head.status == .ok ? expected != body : expected != nil
            figures.withLock { figures in
                figures.requests += 1
                figures.bytes += Int64(body.count)
                if isWrong { figures.wrong += 1 }
                if status.contains("; hit") {
                    figures.hits += 1
                    if figures.hitTimes.count < 1_000_000 { figures.hitTimes.append(Float(elapsed / .milliseconds(1))) }
                }
            }
        } catch {
            if !isOver.load(ordering: .relaxed) { figures.withLock { $0.failed += 1 } }
        }
    }
}
