import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 section 4.2.4 and RFC 5861 seen from outside.
struct StaleScenarioTests {
    @Test(arguments: StaleScenarios.scenarios) func servingStale(_ scenario: Scenario) { scenario.run() }

    @Test func staleLimitsFollowTheOptions() {
        let gone = Scenario(
            "limit", .optimal, .shared, .init(responseLines: [StaleScenarios.two, "ETag: \"a\""]),
            .init(isOriginGone: true, after: 3, expectStatus: 502))
        var options = CachingOptions.gateway
        options.servesStaleWhenDisconnected = false
        gone.run(options)
        options.servesStaleWhenDisconnected = true
        options.disconnectedStaleLimitSeconds = 0
        gone.run(options)
        options.disconnectedStaleLimitSeconds = 99
        options.takesServerErrorAsDisconnection = false
        Scenario(
            "503", .optimal, .shared, .init(responseLines: [StaleScenarios.two, "ETag: \"a\""]),
            .init(status: 503, after: 3, expectStatus: 503)
        ).run(options)
    }

    /// The option: every 5xx, whether or not the request was a validation, within the limit and what prohibits it.
    @Test(
        arguments: [
            (["Cache-Control: max-age=1"], 503, 3.0, 200), (["Cache-Control: max-age=1"], 501, 3, 200),
            (["Cache-Control: max-age=1"], 599, 3, 200), (["Cache-Control: max-age=1"], 404, 3, 404),
            (["Cache-Control: max-age=1", "ETag: \"a\""], 520, 3, 200), (["Cache-Control: max-age=1"], 503, 101, 503),
            (["Cache-Control: max-age=1, must-revalidate"], 503, 3, 503),
            (["Cache-Control: max-age=1, stale-if-error=1"], 501, 3, 501),
        ] as [([String], Int, Double, Int)])
    func everyServerError(_ lines: [String], _ status: Int, _ after: Double, _ expected: Int) {
        var options = CachingOptions.gateway
        options.disconnectedStaleLimitSeconds = 99
        options.servesStaleForServerErrors = true
        let scenario = Scenario(
            "5xx", .optimal, .shared, .init(responseLines: lines),
            .init(status: status, after: after, expectStatus: expected))
        scenario.run(options)
        guard expected == 200, lines.count == 1 else { return }
        // Without it the answer is passed on.
        Scenario(
            "5xx", .optimal, .shared, .init(responseLines: lines),
            .init(status: status, after: after, expectStatus: status)
        ).run(.gateway)
    }

    /// RFC 5861 section 4: a limit that is stated holds, whatever the cache would do without one.
    @Test(
        arguments: [
            (["Cache-Control: max-age=1, stale-if-error=2", "ETag: \"a\""], [], 2.5, 4.0),
            (["Cache-Control: max-age=1, stale-if-error=2"], [], 2.5, 4.0),
            (["Cache-Control: max-age=1, stale-if-error=0", "ETag: \"a\""], [], nil, 1.5),
            (["Cache-Control: max-age=1, stale-if-error=x", "ETag: \"a\""], [], nil, 1.5),
            (["Cache-Control: max-age=1", "ETag: \"a\""], ["Cache-Control: stale-if-error=2"], 2.5, 4.0),
            (
                ["Cache-Control: max-age=1, stale-if-error=60", "ETag: \"a\""], ["Cache-Control: stale-if-error=2"],
                2.5, 4.0
            ),
            (
                ["Cache-Control: max-age=1, stale-if-error=2", "ETag: \"a\""], ["Cache-Control: stale-if-error=60"],
                2.5, 4.0
            ),
        ] as [([String], [String], Double?, Double)])
    func aStatedLimitHolds(_ lines: [String], _ requestLines: [String], _ within: Double?, _ beyond: Double) {
        for isGone in [false, true] {
            for (after, isServed) in [(within, true), (beyond, false)] {
                guard let after else { continue }
                Scenario(
                    "stale-if-error", .required, .shared, .init(responseLines: lines),
                    .init(
                        requestLines: requestLines, status: 503, isOriginGone: isGone, after: after,
                        expectStatus: isServed ? 200 : isGone ? 502 : 503)
                ).run()
            }
        }
    }

    @Test func aDisconnectedCacheServesStaleAndRefusesTheRest() {
        var cache = ModelCache(.privateCache)
        let answer = ScriptedAnswer(
            head: response(200, ["Cache-Control: max-age=2", "ETag: \"a\""]), body: [7])
        _ = cache.handle(request()) { _ in answer }
        cache.advance(3)
        let offline = cache.handle(request(), isDisconnected: true) { _ in answer }
        #expect(offline.isCached && offline.sent.isEmpty && offline.body == [7])
        let miss = cache.handle(request("GET", "/other"), isDisconnected: true) { _ in answer }
        #expect(miss.status == 504 && miss.sent.isEmpty)
    }

    @Test func aClockThatGoesBackMakesResponsesStaleNotImmortal() {
        var cache = ModelCache()
        let answer = ScriptedAnswer(
            head: response(200, ["Cache-Control: max-age=60", "ETag: \"a\""]), body: [7])
        _ = cache.handle(request()) { _ in answer }
        cache.advance(-30)
        #expect(cache.handle(request()) { _ in answer }.isCached)
        cache.advance(-86_400)
        let outcome = cache.handle(request()) { _ in answer }
        #expect(!outcome.isCached)
    }
}
