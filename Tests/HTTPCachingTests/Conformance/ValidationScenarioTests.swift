import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 section 4.3 and RFC 9110 section 13 seen from outside.
struct ValidationScenarioTests {
    @Test(arguments: ValidationScenarios.received) func clientConditions(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: ValidationScenarios.sent) func cacheConditions(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: ValidationScenarios.updates) func update304(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: ValidationScenarios.head) func headUpdates(_ scenario: Scenario) { scenario.run() }
}
