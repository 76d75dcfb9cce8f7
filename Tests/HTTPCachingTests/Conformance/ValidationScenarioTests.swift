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

    /// What the origin replaced by something that may not be stored is not served again.
    @Test(arguments: [(404, ["ETag: \"a\""]), (404, []), (200, [])] as [(Int, [String])])
    func whatWasReplacedIsGone(_ status: Int, _ fields: [String]) {
        let lines = ["Cache-Control: max-age=1, stale-while-revalidate=600"] + fields
        Scenario(
            "\(status)", .required, .shared, .init(status: status, responseLines: lines),
            .init(responseLines: ["Cache-Control: no-store"], after: 3, expectStatus: status),
            .init(responseLines: ["Cache-Control: no-store"], expect: .notCached, expectStatus: 200)
        ).run()
        // A request that only one client makes replaces nothing.
        Scenario(
            "\(status)", .required, .shared,
            .init(status: status, responseLines: ["Cache-Control: max-age=1, stale-if-error=600"] + fields),
            .init(
                requestLines: ["Cache-Control: no-store"], responseLines: ["Cache-Control: max-age=9"], after: 3,
                expectStatus: 200),
            .init(isOriginGone: true, expectStatus: status)
        ).run()
    }

    /// RFC 9110 section 15.4.5: a 304 stands for a 200, so it does not make a stored 404 or redirect fresh.
    @Test(
        arguments: [301, 308, 404, 410, 501],
        [
            ([], "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT", []),
            (["ETag: \"e\""], "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT", []),
            (["ETag: \"e\""], "If-None-Match: \"e\"", ["ETag: \"e\""]),
            (["ETag: W/\"e\""], "If-None-Match: W/\"e\"", ["ETag: W/\"e\""]),
            (
                ["Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"],
                "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT", ["Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"]
            ),
        ] as [([String], String, [String])])
    func a304IsNoAnswerFor(_ status: Int, _ fields: (stored: [String], condition: String, received: [String])) {
        Scenario(
            "\(status)", .required, .shared,
            .init(status: status, responseLines: ["Cache-Control: max-age=1"] + fields.stored),
            .init(
                requestLines: [fields.condition], status: 304,
                responseLines: ["Cache-Control: max-age=30"] + fields.received, after: 2.5, expectStatus: 304),
            .init(responseLines: ["Cache-Control: max-age=30"], expect: .notCached, expectStatus: 200)
        ).run()
        // Nor does the cache ask for one.
        Scenario(
            "\(status)", .required, .shared,
            .init(status: status, responseLines: ["Cache-Control: max-age=1"] + fields.stored),
            .init(
                status: 304, responseLines: ["Cache-Control: max-age=30"] + fields.received, after: 2.5,
                expectMissing: ["Age"])
        ).run()
    }
}
