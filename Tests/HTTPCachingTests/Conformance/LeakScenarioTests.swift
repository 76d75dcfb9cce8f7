import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// What one client must not get of another's exchange, by the rules alone.
struct LeakScenarioTests {
    @Test(arguments: LeakScenarios.cookies) func cookies(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: LeakScenarios.vary) func vary(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: LeakScenarios.requests) func requests(_ scenario: Scenario) { scenario.run() }
}
