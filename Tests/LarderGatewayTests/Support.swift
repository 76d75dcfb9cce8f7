import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import NIOCore
import Synchronization
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

    func connect() async throws -> RawClient { try await RawClient.connect(to: port) }
}

/// Runs `body` with a gateway that forwards to any host through a transport of the test's; afterwards stops it and verifies
/// the store.
func withGateway(
    transport: any Transport, _ change: (inout GatewayConfiguration) throws -> Void = { _ in },
    caching: (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Setting) async throws -> Void
) async throws {
    try await withStore { store in
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

/// Runs `body` with a gateway and a client whose request has reached the origin, which answers "late" when the gate opens.
func withRequestThatWaits(_ body: (Setting, RawClient, Gate) async throws -> Void) async throws {
    let gate = Gate()
    let transport = StubTransport { _ in
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

extension StubTransport {
    /// Takes all content of a request before it answers.
    static func takingContent(_ answer: String = "complete") -> StubTransport {
        StubTransport { request throws(TransportError) in
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
final class TestTime: GatewayTime {
    private let nanoseconds = Atomic<UInt64>(1_000_000_000_000)

    func now() -> NIODeadline { .uptimeNanoseconds(nanoseconds.load(ordering: .relaxed)) }
    /// 2026-11-21T14:08:10Z
    func wallSeconds() -> Int64 { 1_795_270_090 }
    var ticks: Bool { false }

    func advance(seconds: Int) { nanoseconds.add(UInt64(seconds) * 1_000_000_000, ordering: .relaxed) }
}

/// A transport that answers from a function, without a network; it keeps what was asked.
final class StubTransport: Transport {
    typealias Answer = @Sendable (TransportRequest) async throws(TransportError) -> TransportResponse

    private let answer: Answer
    private let log = Mutex<[HTTPRequest]>([])

    init(_ answer: @escaping Answer) { self.answer = answer }

    var requests: [HTTPRequest] { log.withLock { $0 } }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        log.withLock { $0.append(request.head) }
        return try await answer(request)
    }
}

extension TransportResponse {
    /// A response with a text.
    static func text(
        _ text: String, status: Int = 200, reason: String? = nil, _ fields: HTTPFields = [:],
        declaresLength: Bool = true
    ) -> TransportResponse {
        bytes(Array(text.utf8), status: status, reason: reason, fields, declaresLength: declaresLength)
    }

    /// A response with bytes.
    static func bytes(
        _ bytes: [UInt8], status: Int = 200, reason: String? = nil, _ fields: HTTPFields = [:],
        declaresLength: Bool = true
    ) -> TransportResponse {
        var fields = fields
        if declaresLength { fields[.contentLength] = String(bytes.count) }
        let left = Mutex(bytes)
        return TransportResponse(
            head: HTTPResponse(
                status: reason.map { .init(code: status, reasonPhrase: $0) } ?? .init(code: status),
                headerFields: fields),
            body: TransportBody(length: declaresLength ? Int64(bytes.count) : nil) { () throws(TransportError) in
                left.withLock { left in
                    guard !left.isEmpty else { return nil }
                    defer { left = Array(left.dropFirst(65_536)) }
                    return Array(left.prefix(65_536))
                }
            })
    }
}

let fresh: HTTPFields = [.cacheControl: "max-age=3600"]

func get(_ target: String, _ fields: String..., version: String = "1.1", method: String = "GET") -> String {
    "\(method) \(target) HTTP/\(version)\r\nHost: example.org\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
}

/// Pieces that are taken once.
final class Pieces: Sendable {
    private let left: Mutex<[String]>
    init(_ pieces: [String]) { left = Mutex(pieces) }
    func next() -> [UInt8]? { left.withLock { $0.isEmpty ? nil : Array($0.removeFirst().utf8) } }
}

/// A number that grows.
final class Count: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .relaxed) }
    func add(_ more: Int) -> Int { number.add(more, ordering: .relaxed).newValue }

    /// Returns when the number has not grown for a while: for what has to stand still, there is no event to wait for.
    func stands() async {
        var last = -1
        while value != last {
            last = value
            for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(5)) }
        }
    }
}
