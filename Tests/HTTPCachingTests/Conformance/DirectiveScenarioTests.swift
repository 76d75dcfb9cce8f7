import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 3.5 and 5.2, RFC 9213, RFC 8246 seen from outside.
struct DirectiveScenarioTests {
    @Test(arguments: DirectiveScenarios.response) func responseDirectives(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: DirectiveScenarios.request) func requestDirectives(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: DirectiveScenarios.authorization) func authenticatedRequests(_ scenario: Scenario) {
        scenario.run()
    }
    @Test(arguments: DirectiveScenarios.cdn) func targetedFields(_ scenario: Scenario) { scenario.run() }

    @Test func targetedFieldIsIgnoredWhenNotOnTheTargetList() {
        let scenario = Scenario.reuse("other", .required, ["CDN-Cache-Control: max-age=3600"], .notCached)
        scenario.run(CachingOptions(mode: .shared))
    }

    @Test func firstValidTargetedFieldOnTheListDecides() {
        var options = CachingOptions.gateway
        options.targetedFields = [.init("Mine-Cache-Control")!, .cdnCacheControl]
        Scenario.reuse("first", .required, ["CDN-Cache-Control: no-store", "Mine-Cache-Control: max-age=99"], .cached)
            .run(options)
        Scenario.reuse("second", .required, ["CDN-Cache-Control: max-age=99", "Mine-Cache-Control: ("], .cached).run(
            options)
    }

    @Test func pragmaAndRequestDirectivesFollowTheOptions() {
        var options = CachingOptions.gateway
        options.honorsPragma = true
        DirectiveScenarios.requested("pragma", DirectiveScenarios.hour, ["Pragma: no-cache"], .notCached).run(options)
        DirectiveScenarios.requested("pragma, extension", DirectiveScenarios.hour, ["Pragma: other"], .cached).run(
            options)
        DirectiveScenarios.requested(
            "cache-control wins", DirectiveScenarios.hour, ["Pragma: no-cache", "Cache-Control: max-age=9"], .cached
        ).run(
            options)
        options.honorsRequestDirectives = false
        DirectiveScenarios.requested("ignored", DirectiveScenarios.hour, ["Cache-Control: no-cache"], .cached).run(
            options)
    }
}
