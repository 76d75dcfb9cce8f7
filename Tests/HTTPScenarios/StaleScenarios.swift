import HTTPCaching
import HTTPTypes

/// RFC 9111 section 4.2.4 and RFC 5861 seen from outside.
package enum StaleScenarios {
    package static let two = "Cache-Control: max-age=2"

    package static func prohibited(_ directive: String) -> Scenario {
        Scenario(
            "not with \(directive)", .required, .shared, .init(responseLines: [two + ", " + directive, "ETag: \"a\""]),
            .init(isOriginGone: true, after: 3, expectStatus: 502))
    }

    package static let scenarios: [Scenario] = [
        Scenario(
            "the origin is gone", .optimal, .shared, .init(responseLines: [two, "ETag: \"a\""], body: "x"),
            .init(
                isOriginGone: true, after: 3, expect: .cached, expectStatus: 200, expectLines: ["Age: 3"],
                expectBody: "x")),
        Scenario(
            "503", .optimal, .shared, .init(responseLines: [two, "ETag: \"a\""], body: "x"),
            .init(status: 503, after: 3, expectStatus: 200, expectBody: "x")),
        Scenario(
            "404 is not an error of the server", .required, .shared, .init(responseLines: [two, "ETag: \"a\""]),
            .init(status: 404, after: 3, expectStatus: 404)),
        prohibited("must-revalidate"), prohibited("proxy-revalidate"), prohibited("no-cache"), prohibited("s-maxage=2"),
        Scenario(
            "proxy-revalidate does not concern a private cache", .optimal, .private,
            .init(responseLines: [two + ", proxy-revalidate", "ETag: \"a\""]),
            .init(isOriginGone: true, after: 3, expectStatus: 200)),
        Scenario(
            "503 with must-revalidate", .required, .shared,
            .init(responseLines: [two + ", must-revalidate", "ETag: \"a\""]),
            .init(status: 503, after: 3, expectStatus: 503)),
        Scenario(
            "stale-if-error, gone", .optimal, .shared, .init(responseLines: [two + ", stale-if-error=60"], body: "x"),
            .init(isOriginGone: true, after: 3, expectStatus: 200, expectBody: "x")),
        Scenario(
            "stale-if-error, 500", .optimal, .shared, .init(responseLines: [two + ", stale-if-error=60"], body: "x"),
            .init(status: 500, after: 3, expectStatus: 200, expectBody: "x")),
        Scenario(
            "stale-if-error of the request", .optimal, .shared, .init(responseLines: [two, "ETag: \"a\""], body: "x"),
            .init(requestLines: ["Cache-Control: stale-if-error=60"], status: 502, after: 3, expectStatus: 200)),
        Scenario(
            "stale-while-revalidate", .optimal, .shared,
            .init(
                responseLines: ["Cache-Control: max-age=1, stale-while-revalidate=3600", "ETag: \"abc\""], body: "x"),
            .init(
                responseLines: ["Cache-Control: max-age=60", "ETag: \"abc\""], after: 3, expect: .cached,
                expectBody: "x",
                expectSent: ["If-None-Match: \"abc\""]),
            .init(after: 3, expect: .cached, expectLines: ["Age: 3"])),
        Scenario(
            "stale-while-revalidate is over", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=1, stale-while-revalidate=4", "ETag: \"abc\""]),
            .init(responseLines: ["Cache-Control: max-age=60", "ETag: \"abc\""], after: 6, expect: .validatedByTag)),
        Scenario(
            "stale-while-revalidate does not beat must-revalidate", .required, .shared,
            .init(responseLines: [
                "Cache-Control: max-age=1, must-revalidate, stale-while-revalidate=60", "ETag: \"abc\"",
            ]),
            .init(responseLines: ["ETag: \"abc\""], after: 3, expect: .validatedByTag)),
        Scenario(
            "stale-while-revalidate and a client's limit", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=1, stale-while-revalidate=60", "ETag: \"abc\""]),
            .init(
                requestLines: ["Cache-Control: max-age=1"], responseLines: ["ETag: \"abc\""], after: 3,
                expect: .notCached)),
        Scenario(
            "an invalidated response is not served for being disconnected", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=99", "ETag: \"a\""]),
            .init(method: "HEAD", requestLines: ["Cache-Control: no-cache"], responseLines: ["ETag: \"b\""]),
            .init(isOriginGone: true, expectStatus: 502)),
    ]

    /// Every table.
    package static let all = scenarios
}
