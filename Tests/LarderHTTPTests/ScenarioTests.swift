import HTTPCaching
import HTTPScenarios
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// The conformance scenarios through the whole cache: rules, store and all, with a scripted transport.
///
/// One after the other: every store reserves address space, and there are hundreds of scenarios.
@Suite(.serialized) struct HTTPCacheScenarioTests {
    @Test(arguments: DirectiveScenarios.all) func directives(_ scenario: Scenario) async throws {
        try await run(scenario)
    }
    @Test(arguments: FreshnessScenarios.all) func freshness(_ scenario: Scenario) async throws {
        try await run(scenario)
    }
    @Test(arguments: PartialScenarios.all) func parts(_ scenario: Scenario) async throws { try await run(scenario) }
    @Test(arguments: SelectionScenarios.all) func selection(_ scenario: Scenario) async throws {
        try await run(scenario)
    }
    @Test(arguments: StaleScenarios.all) func staleness(_ scenario: Scenario) async throws { try await run(scenario) }
    @Test(arguments: StoringScenarios.all) func storing(_ scenario: Scenario) async throws { try await run(scenario) }
    @Test(arguments: ValidationScenarios.all) func validation(_ scenario: Scenario) async throws {
        try await run(scenario)
    }

    private func run(_ scenario: Scenario) async throws {
        let clock = TestClock(wall: Timestamp(microseconds: start.milliseconds * 1_000))
        try await withStore(configuration: .testing(clock: clock)) { store in
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
            return Outcome(status: error.kind == .timedOut ? 504 : 502, fields: [:], body: [])
        }
    }
}
