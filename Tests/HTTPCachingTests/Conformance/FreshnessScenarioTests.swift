import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 4.2, 5.2.2 and 5.3 seen from outside.
struct FreshnessScenarioTests {
    @Test(arguments: FreshnessScenarios.cacheControl) func cacheControlFreshness(_ scenario: Scenario) {
        scenario.run()
    }
    @Test(arguments: FreshnessScenarios.parsing) func cacheControlParsing(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: FreshnessScenarios.age) func ageParsing(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: FreshnessScenarios.expires) func expiresFreshness(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: FreshnessScenarios.heuristic) func heuristicFreshness(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: FreshnessScenarios.statuses) func statusCodes(_ scenario: Scenario) { scenario.run() }
}
