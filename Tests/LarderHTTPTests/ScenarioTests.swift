import HTTPTestSupport
import HTTPCaching
import HTTPScenarios
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// The conformance scenarios through the whole cache: rules, store and all, with a scripted transport.
struct HTTPCacheScenarioTests {
    @Test func directives() async throws { try await run(DirectiveScenarios.all) }
    @Test func freshness() async throws { try await run(FreshnessScenarios.all) }
    @Test func leaks() async throws { try await run(LeakScenarios.all + LeakScenarios.connection) }
    @Test func parts() async throws { try await run(PartialScenarios.all) }
    @Test func selection() async throws { try await run(SelectionScenarios.all) }
    @Test func staleness() async throws { try await run(StaleScenarios.all) }
    @Test func storing() async throws { try await run(StoringScenarios.all) }
    @Test func validation() async throws { try await run(ValidationScenarios.all) }

    /// One store for all, emptied in between: hundreds of stores would take longer than the scenarios.
    private func run(_ scenarios: [Scenario]) async throws {
        let clock = TestClock()
        // Each scenario begins at the same moment, and store time does not go back: what it sees as expired, it
        // removes.
        let standing = TestClock(wall: Timestamp(microseconds: start.milliseconds * 1_000))
        try await withStore(configuration: .testing(clock: standing)) { store in
            for scenario in scenarios {
                clock.jump(by: Timestamp(microseconds: start.milliseconds * 1_000) - clock.now())
                try await run(scenario, store, clock)
                try await store.perform { try $0.clear() }
            }
        }
    }

    private func run(_ scenario: Scenario, _ store: Store, _ clock: TestClock) async throws {
        let transport = ScriptedTransport()
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        configuration.caching.mode = scenario.mode
        configuration.clock = clock
        configuration.retries = .none
        let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
        for (number, step) in scenario.steps.enumerated() {
            clock.advance(by: .milliseconds(Int64(step.after * 1_000)))
            let now = Instant(milliseconds: clock.now().microseconds / 1_000)
            transport.handler = Self.handler(step, now: now)
            var request = request(step.method, step.path)
            request.headerFields = fields(step.requestLines, now: now)
            var outcome = await outcome(of: request, hasContent: step.hasContent, cache)
            await cache.drain()
            outcome.sent = transport.takeSent().map(\.head)
            scenario.check(step, outcome, now: now, "\(scenario.name), step \(number + 1)")
        }
    }

    private static func handler(_ step: Scenario.Step, now: Instant) -> ScriptedTransport.Handler {
        if step.isOriginGone { return ScriptedTransport.unreachable }
        return { request throws(TransportError) in
            let answer = step.scriptedAnswer(to: request.head, now: now)
            return .answer(answer.head, answer.body, isComplete: answer.isComplete)
        }
    }

    private func outcome(of request: HTTPRequest, hasContent: Bool, _ cache: HTTPCache) async -> Outcome {
        do {
            let response = try await cache.fetch(request, body: hasContent ? RequestBody(Array("content".utf8)) : nil)
            let body = (try? await response.body.bytes()) ?? []
            return Outcome(
                status: response.head.status.code, fields: response.head.headerFields, body: body,
                isCached: [.hit, .stale].contains(response.source)
                    || response.source == .fallback && response.originStatus == nil)
        } catch {
            return Outcome(status: error.code == .timedOut ? 504 : 502, fields: [:], body: [])
        }
    }
}
