import HTTPCaching
import HTTPScenarios
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Locks
import TestOrigin
import TestSupport
import Testing

/// The conformance scenarios again, over real sockets: client, gateway, origin.
struct GatewayScenarioTests {
    @Test func directives() async throws { try await run(DirectiveScenarios.all) }
    @Test func freshness() async throws { try await run(FreshnessScenarios.all) }
    @Test func leaks() async throws { try await run(LeakScenarios.all) }
    @Test func parts() async throws { try await run(PartialScenarios.all) }
    @Test func selection() async throws { try await run(SelectionScenarios.all) }
    @Test func staleness() async throws { try await run(StaleScenarios.all) }
    @Test func storing() async throws { try await run(StoringScenarios.all) }
    @Test func validation() async throws { try await run(ValidationScenarios.all) }

    /// What does not fit a shared cache at an http address is left out: private caches, and references to https.
    private func run(_ scenarios: [Scenario]) async throws {
        let others = ["POST with an absolute Content-Location", "another origin's Location"]
        let clock = TestClock()
        // Each scenario begins at the same moment, and store time does not go back: what it sees as expired, it
        // removes.
        let standing = TestClock(wall: Timestamp(microseconds: start.milliseconds * 1_000))
        try await withStore(configuration: .testing(clock: standing)) { store in
            let script = Script()
            let origin = try await TestOrigin.start { try script.answer($0) }
            let inner = NIOTransport()
            var gatewayConfiguration = GatewayConfiguration()
            gatewayConfiguration.eventLoops = 1
            gatewayConfiguration.routes = Routes(otherwise: try OriginServer(origin.url))
            var configuration = HTTPCacheConfiguration()
            configuration.caching = .gateway
            configuration.clock = clock
            configuration.retries = .none
            let cache = HTTPCache(
                store: store, transport: RoutedTransport(gatewayConfiguration.routes, over: inner),
                configuration: configuration)
            let gateway = try await Gateway.start(gatewayConfiguration, cache: cache)
            let client = NIOTransport()
            let port = try #require(gateway.address?.port)
            for scenario in scenarios where scenario.mode == .shared && !others.contains(scenario.name) {
                clock.jump(by: Timestamp(microseconds: start.milliseconds * 1_000) - clock.now())
                for (number, step) in scenario.steps.enumerated() {
                    clock.advance(by: .milliseconds(Int64(step.after * 1_000)))
                    let now = Instant(milliseconds: clock.now().microseconds / 1_000)
                    script.set(step, now: now)
                    var outcome = try await outcome(of: step, now: now, port: port, client)
                    await cache.drain()
                    outcome.sent = script.takeSent()
                    // A response that is served because there is no origin was stored, too.
                    if step.isOriginGone, outcome.status == 200 { outcome.isCached = true }
                    scenario.check(step, outcome, now: now, "\(scenario.name), step \(number + 1)")
                }
                try await store.perform { try $0.clear() }
            }
            await client.close()
            await gateway.stop(drain: .seconds(1))
            await inner.close()
            await origin.stop()
        }
    }

    private func outcome(of step: Scenario.Step, now: Instant, port: Int, _ client: NIOTransport) async throws
        -> Outcome
    {
        var head = request(step.method, step.path)
        head.scheme = "http"
        head.headerFields = fields(step.requestLines, now: now)
        var request = TransportRequest(head: head, body: step.hasContent ? RequestBody(Array("content".utf8)) : nil)
        request.destination = TransportDestination(scheme: "http", host: "127.0.0.1", port: port)
        let response = try await client.send(request)
        var body: [UInt8] = []
        do {
            while let piece = try await response.body.next() { body += piece }
        } catch {
            // What came before a body was cut off counts.
        }
        let fields = response.head.headerFields
        let status = fields[values: .cacheStatus].joined(separator: ", ")
        return Outcome(
            status: response.head.status.code, fields: fields, body: body, isCached: status.contains("; hit"),
            cacheStatus: status)
    }
}

/// What the origin answers to the requests of a step, and what it was sent.
private final class Script: Sendable {
    private struct State {
        var step = Scenario.Step()
        var now = start
        var sent: [HTTPRequest] = []
    }

    private let state = Mutex(State())

    func set(_ step: Scenario.Step, now: Instant) {
        state.withLock { state in
            state.step = step
            state.now = now
        }
    }

    func takeSent() -> [HTTPRequest] {
        state.withLock { state in
            defer { state.sent = [] }
            return state.sent
        }
    }

    func answer(_ received: OriginRequest) throws -> OriginAnswer {
        let request = HTTPRequest(
            method: HTTPRequest.Method(received.method) ?? .get, scheme: "http", authority: "example.org",
            path: received.target, headerFields: received.fields)
        let (step, now) = state.withLock { state in
            state.sent.append(request)
            return (state.step, state.now)
        }
        if step.isOriginGone { return .closed }
        let scripted = step.scriptedAnswer(to: request, now: now)
        var answer = OriginAnswer.status(scripted.head.status.code)
        for field in scripted.head.headerFields { answer = answer.header(field.name.rawName, field.value) }
        if received.method != "HEAD", ![204, 304].contains(scripted.head.status.code) {
            answer = answer.content(scripted.body)
        }
        return answer
    }
}
