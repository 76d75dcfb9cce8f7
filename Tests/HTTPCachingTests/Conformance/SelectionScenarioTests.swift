import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 section 4.1, section 2 and RFC 9110 section 4.2.3 seen from outside.
struct SelectionScenarioTests {
    @Test(arguments: SelectionScenarios.scenarios) func selection(_ scenario: Scenario) { scenario.run() }

    @Test func contentInGETReachesOnlyTheOrigin() {
        var cache = ModelCache()
        let answer = ScriptedAnswer(head: response(200, ["Cache-Control: max-age=99"]), body: [1])
        var outcome = cache.handle(request(), hasContent: true) { _ in answer }
        #expect(outcome.obstacle == .requestHasContent && outcome.cacheStatus.contains("fwd=bypass"))
        outcome = cache.handle(request()) { _ in answer }
        #expect(!outcome.isCached)
        outcome = cache.handle(request(), hasContent: true) { _ in answer }
        #expect(!outcome.isCached)
    }
}
