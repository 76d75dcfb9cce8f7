import HTTPCaching
import HTTPTypes

/// RFC 9111 sections 3.5 and 5.2, RFC 9213, RFC 8246 seen from outside.
package enum DirectiveScenarios {
    package static let fresh = ["@Expires: 10000", "@Date: 0"]

    package static let response: [Scenario] = [
        .reuse("private, shared", .required, ["Cache-Control: private, max-age=3600"], .notCached),
        .reuse("private, private", .optimal, ["Cache-Control: private, max-age=3600"], .cached, mode: .private),
        .reuse("no-store", .required, ["Cache-Control: no-store"], .notCached),
        .reuse("No-StOrE", .required, ["Cache-Control: No-StOrE"], .notCached),
        .reuse("no-store beside max-age", .required, ["Cache-Control: max-age=10000, no-store"] + fresh, .notCached),
        .reuse(
            "private, no-store", .required, ["Cache-Control: private, no-store, max-age=9"], .notCached, mode: .private),
        .reuse("no-store with an argument", .required, ["Cache-Control: no-store=1, max-age=9"], .notCached),
        .reuse("no-cache", .required, ["Cache-Control: max-age=10000, no-cache"] + fresh, .notCached),
        .reuse("No-CaChE", .required, ["Cache-Control: max-age=10000, No-CaChE"] + fresh, .notCached),
        .reuse("no-cache is validated", .optimal, ["Cache-Control: no-cache", "ETag: \"abcd\""], .validatedByTag),
        .reuse(
            "no-cache, fresh", .optimal, ["Cache-Control: max-age=9999, no-cache", "ETag: \"abcd\""] + fresh,
            .validatedByTag),
        .reuse("empty no-cache list", .required, ["Cache-Control: max-age=9999, no-cache=\"\""], .notCached),
        .reuse(
            "must-revalidate, fresh", .optimal, ["Cache-Control: max-age=99, must-revalidate", "ETag: \"abcd\""],
            .cached),
        .reuse(
            "must-revalidate, stale", .required, ["Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\""],
            .validatedByTag),
        .reuse("must-understand, known", .optimal, ["Cache-Control: max-age=99, no-store, must-understand"], .cached),
        .reuse(
            "must-understand, unknown", .required, ["Cache-Control: max-age=99, no-store, must-understand"], .notCached,
            status: 599),
        .reuse(
            "must-understand, unknown, alone", .required, ["Cache-Control: max-age=99, must-understand"], .notCached,
            status: 599),
        .reuse("Pragma in a response", .optimal, ["Cache-Control: max-age=3600", "Pragma: no-cache"], .cached),
        .reuse("unknown directives", .required, ["Cache-Control: max-age=3600, community=\"UCI\""], .cached),
        Scenario(
            "no-cache with fields leaves them out", .required, .shared,
            .init(responseLines: [
                "Cache-Control: no-cache=\"a, B\"", "A: 1", "B: 2", "C: 3", "Cache-Control: max-age=3600",
            ]),
            .init(after: 3, expect: .cached, expectLines: ["C: 3"], expectMissing: ["A", "B"])),
        Scenario(
            "private with fields leaves them out of a shared cache", .required, .shared,
            .init(
                responseLines: ["Cache-Control: private=\"a\", max-age=3600", "A: 1", "C: 3"], expectLines: ["A: 1"]),
            .init(expect: .cached, expectLines: ["C: 3"], expectMissing: ["A"])),
        Scenario(
            "private with fields keeps them in a private cache", .optimal, .private,
            .init(responseLines: ["Cache-Control: private=\"a\", max-age=3600", "A: 1"]),
            .init(expect: .cached, expectLines: ["A: 1"])),
        Scenario(
            "immutable is not validated by a reload", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=10000, immutable", "ETag: \"abcd\""]),
            .init(requestLines: ["Cache-Control: max-age=0"], after: 3, expect: .cached)),
        Scenario(
            "immutable is validated by no-cache", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=10000, immutable", "ETag: \"abcd\""]),
            .init(requestLines: ["Cache-Control: no-cache"], expect: .validatedByTag)),
        Scenario(
            "stale immutable is validated", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2, immutable", "ETag: \"abcd\""]),
            .init(requestLines: ["Cache-Control: max-age=0"], after: 3, expect: .validatedByTag)),
    ]

    /// A response stored first, then a request with directives.
    package static func requested(
        _ name: String, _ stored: [String], _ lines: [String], _ expect: Scenario.Expectation, after: Double = 3
    ) -> Scenario {
        Scenario(
            name, .optimal, .shared, .init(responseLines: stored),
            .init(requestLines: lines, responseLines: stored, after: after, expect: expect))
    }

    package static let hour = ["Cache-Control: max-age=3600"]
    package static let request: [Scenario] = [
        requested("max-age=0", hour, ["Cache-Control: max-age=0"], .notCached),
        requested("max-age=1", hour, ["Cache-Control: max-age=1"], .notCached),
        requested("max-age=10", hour, ["Cache-Control: max-age=10"], .cached),
        requested("max-age below Age", hour + ["Age: 1800"], ["Cache-Control: max-age=600"], .notCached),
        requested("max-stale", ["Cache-Control: max-age=1"], ["Cache-Control: max-stale=1000"], .cached),
        requested("max-stale without limit", ["Cache-Control: max-age=1"], ["Cache-Control: max-stale"], .cached),
        requested(
            "max-stale too small", ["Cache-Control: max-age=1", "ETag: \"a\""], ["Cache-Control: max-stale=1"],
            .validatedByTag),
        requested(
            "max-stale, prohibited", ["Cache-Control: max-age=1, must-revalidate", "ETag: \"a\""],
            ["Cache-Control: max-stale"], .notCached),
        requested("min-fresh", ["Cache-Control: max-age=1500"], ["Cache-Control: min-fresh=2000"], .notCached),
        requested("min-fresh met", ["Cache-Control: max-age=1500"], ["Cache-Control: min-fresh=1400"], .cached),
        requested(
            "min-fresh with Age", ["Cache-Control: max-age=1500", "Age: 1000"], ["Cache-Control: min-fresh=1000"],
            .notCached),
        requested("no-cache", hour, ["Cache-Control: no-cache"], .notCached),
        requested("no-cache by date", hour + ["@Last-Modified: -10000"], ["Cache-Control: no-cache"], .validatedByDate),
        requested("no-cache by tag", hour + ["ETag: \"abc\""], ["Cache-Control: no-cache"], .validatedByTag),
        // Section 5.2.1.5: does not apply to an already stored response.
        requested("no-store on a hit", hour, ["Cache-Control: no-store"], .cached),
        requested("Pragma is deprecated", hour, ["Pragma: no-cache"], .cached),
        requested("Cookie", hour, ["Cookie: a=b"], .cached),
        Scenario(
            "no-store keeps the response out", .required, .shared,
            .init(requestLines: ["Cache-Control: no-store"], responseLines: hour),
            .init(expect: .notCached)),
        Scenario(
            "only-if-cached, miss", .required, .shared,
            .init(requestLines: ["Cache-Control: only-if-cached"], expectStatus: 504)),
        Scenario(
            "only-if-cached, hit", .required, .shared, .init(responseLines: hour),
            .init(requestLines: ["Cache-Control: only-if-cached"], expect: .cached, expectStatus: 200)),
        Scenario(
            "only-if-cached, stale", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=1", "ETag: \"a\""]),
            .init(requestLines: ["Cache-Control: only-if-cached"], after: 9, expectStatus: 504)),
    ]

    package static func authorized(
        _ name: String, _ kind: Scenario.Kind, _ lines: [String], _ expect: Scenario.Expectation,
        _ mode: CacheMode = .shared
    )
        -> Scenario
    {
        Scenario(
            name, kind, mode,
            .init(requestLines: ["Authorization: FOO"], responseLines: lines, expectSent: ["Authorization: FOO"]),
            .init(responseLines: lines, after: 3, expect: expect))
    }

    package static let authorization: [Scenario] = [
        authorized("explicit freshness is not enough", .required, fresh, .notCached),
        authorized("max-age is not enough", .required, hour, .notCached),
        authorized("public", .optimal, ["Cache-Control: max-age=3600, public"], .cached),
        authorized("must-revalidate", .optimal, ["Cache-Control: max-age=3600, must-revalidate"], .cached),
        authorized("s-maxage", .optimal, ["Cache-Control: s-maxage=3600"], .cached),
        authorized(
            "proxy-revalidate is not enough", .required, ["Cache-Control: max-age=3600, proxy-revalidate"], .notCached),
        authorized("private cache", .optimal, hour, .cached, .private),
        Scenario(
            "304 to credentials does not make a response public property", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=1", "ETag: \"a\""]),
            .init(
                requestLines: ["Authorization: FOO"],
                responseLines: ["Cache-Control: max-age=99", "ETag: \"a\"", "X: secret"], after: 3,
                expect: .validatedByTag, expectLines: ["X: secret"]),
            .init(
                responseLines: ["Cache-Control: max-age=99", "ETag: \"a\""], after: 1, expect: .validatedByTag,
                expectMissing: ["X"])),
    ]

    package static func targeted(
        _ name: String, _ kind: Scenario.Kind, _ lines: [String], _ expect: Scenario.Expectation
    )
        -> Scenario
    {
        .reuse(name, kind, lines, expect)
    }

    package static let cdn: [Scenario] = [
        targeted("max-age", .optimal, ["CDN-Cache-Control: max-age=3600"], .cached),
        targeted("2^31", .optimal, ["CDN-Cache-Control: max-age=2147483648"], .cached),
        targeted("99999999999", .optimal, ["CDN-Cache-Control: max-age=99999999999"], .cached),
        targeted("Age", .required, ["@Date: 0", "CDN-Cache-Control: max-age=3600", "Age: 7200"], .notCached),
        targeted(
            "space before =", .required, ["Cache-Control: max-age=1", "CDN-Cache-Control: max-age =100"], .notCached),
        targeted(
            "space after =", .required, ["Cache-Control: max-age=1", "CDN-Cache-Control: max-age= 100"], .notCached),
        targeted("0", .required, ["CDN-Cache-Control: max-age=0"], .notCached),
        targeted("extension", .optimal, ["CDN-Cache-Control: foobar, max-age=3600"], .cached),
        targeted("keys are lower case", .required, ["CDN-Cache-Control: MaX-aGe=3600"], .notCached),
        targeted(
            "past Expires", .optimal, ["CDN-Cache-Control: max-age=3600", "@Expires: -10000", "@Date: 0"], .cached),
        targeted("invalid Expires", .optimal, ["CDN-Cache-Control: max-age=3600", "Expires: 0", "@Date: 0"], .cached),
        targeted(
            "0 and Expires", .required, ["CDN-Cache-Control: max-age=0", "@Expires: 10000", "@Date: 0"], .notCached),
        targeted(
            "Expires is ignored", .required, ["CDN-Cache-Control: foobar", "@Expires: 10000", "@Date: 0"], .notCached),
        targeted(
            "long over short", .optimal, ["Cache-Control: max-age=1", "CDN-Cache-Control: max-age=3600"], .cached),
        targeted(
            "short over long", .required, ["Cache-Control: max-age=3600", "CDN-Cache-Control: max-age=1"], .notCached),
        targeted(
            "private", .required, ["CDN-Cache-Control: private", "Cache-Control: max-age=10000"] + fresh, .notCached),
        targeted(
            "no-cache", .required, ["CDN-Cache-Control: no-cache", "Cache-Control: max-age=10000"] + fresh, .notCached),
        targeted(
            "no-store", .required, ["Cache-Control: max-age=10000", "CDN-Cache-Control: no-store"] + fresh, .notCached),
        targeted("over no-store", .optimal, ["Cache-Control: no-store", "CDN-Cache-Control: max-age=10000"], .cached),
        targeted(
            "not a structured field", .required,
            ["CDN-Cache-Control: max-age=10000, &&&&&", "Cache-Control: no-store"], .notCached),
        targeted(
            "wrong type", .required, ["CDN-Cache-Control: max-age=\"10000\"", "Cache-Control: no-store"], .notCached),
        targeted("decimal", .required, ["CDN-Cache-Control: max-age=10.5", "Cache-Control: no-store"], .notCached),
        targeted("empty falls back", .required, ["CDN-Cache-Control: ", "Cache-Control: max-age=3600"], .cached),
        targeted("invalid falls back", .required, ["CDN-Cache-Control: =", "Cache-Control: max-age=3600"], .cached),
        targeted("parameters are ignored", .required, ["CDN-Cache-Control: max-age=3600;a=1"], .cached),
        targeted("negative", .required, ["CDN-Cache-Control: max-age=-1"], .notCached),
        Scenario(
            "the field is passed on", .required, .shared,
            .init(
                responseLines: ["Cache-Control: max-age=9", "CDN-Cache-Control: foo"],
                expectLines: ["CDN-Cache-Control: foo"])),
    ]

    /// Every table.
    package static let all = response + request + authorization + cdn
}
