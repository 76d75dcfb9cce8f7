import HTTPCaching
import HTTPTypes

/// RFC 9111 sections 4.2, 5.2.2 and 5.3 seen from outside.
package enum FreshnessScenarios {
    package static let cacheControl: [Scenario] = [
        .reuse("no freshness information", .required, [], .notCached),
        .reuse("max-age", .optimal, ["Cache-Control: max-age=3600"], .cached),
        .reuse("max-age is over", .required, ["Cache-Control: max-age=2"], .notCached),
        .reuse("max-age=0", .required, ["Cache-Control: max-age=0"], .notCached),
        .reuse("2^31 - 1", .optimal, ["Cache-Control: max-age=2147483647"], .cached),
        .reuse("2^31", .optimal, ["Cache-Control: max-age=2147483648"], .cached),
        .reuse("2^31 + 1", .optimal, ["Cache-Control: max-age=2147483649"], .cached),
        .reuse("99999999999", .optimal, ["Cache-Control: max-age=99999999999"], .cached),
        .reuse("60 digits", .optimal, ["Cache-Control: max-age=" + String(repeating: "9", count: 60)], .cached),
        .reuse("Age over max-age", .required, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 7200"], .notCached),
        .reuse("an old Date counts", .optimal, ["@Date: -7200", "Cache-Control: max-age=3600"], .notCached),
        .reuse("past Expires", .optimal, ["Cache-Control: max-age=3600", "@Expires: -7200", "@Date: 0"], .cached),
        .reuse("invalid Expires", .optimal, ["Cache-Control: max-age=3600", "Expires: 0", "@Date: 0"], .cached),
        .reuse(
            "max-age=0 and Expires", .required, ["@Expires: 3600", "Cache-Control: max-age=0", "@Date: 0"], .notCached),
        .reuse("extension", .optimal, ["Cache-Control: foobar, max-age=3600"], .cached),
        .reuse("case", .optimal, ["Cache-Control: MaX-aGe=3600"], .cached),
        .reuse("negative", .required, ["Cache-Control: max-age=-3600"], .notCached),
        .reuse("private: max-age", .required, ["Cache-Control: s-maxage=3600, max-age=1"], .notCached, mode: .private),
        .reuse(
            "private: lines", .required, ["Cache-Control: s-maxage=3600", "Cache-Control: max-age=1"], .notCached,
            mode: .private),
        .reuse("s-maxage", .optimal, ["Cache-Control: s-maxage=3600"], .cached),
        .reuse("short s-maxage", .required, ["Cache-Control: max-age=3600, s-maxage=1"], .notCached),
        .reuse("short s-maxage first", .required, ["Cache-Control: s-maxage=1, max-age=3600"], .notCached),
        .reuse(
            "short s-maxage, lines", .required, ["Cache-Control: max-age=3600", "Cache-Control: s-maxage=1"], .notCached
        ),
        .reuse("long s-maxage", .optimal, ["Cache-Control: max-age=1, s-maxage=3600"], .cached),
        .reuse(
            "s-maxage, past Expires", .optimal, ["@Expires: -10", "Cache-Control: max-age=0, s-maxage=3600"], .cached),
    ]

    package static let parsing: [Scenario] = [
        .reuse("first of two counts", .optimal, ["Cache-Control: max-age=1800, max-age=1"], .cached),
        .reuse(
            "first of two lines counts", .optimal, ["Cache-Control: max-age=1800", "Cache-Control: max-age=1"], .cached),
        .reuse("first of two is stale", .optimal, ["Cache-Control: max-age=1, max-age=1800"], .notCached),
        .reuse("in quotes, before", .required, ["Cache-Control: extension=\"max-age=3600\", max-age=1"], .notCached),
        .reuse("in quotes, after", .required, ["Cache-Control: max-age=1, extension=\"max-age=3600\""], .notCached),
        .reuse(
            "in quotes with comma", .required, ["Cache-Control: extension=\"a, max-age=3600\", max-age=1"], .notCached),
        .reuse("in quotes with escape", .required, ["Cache-Control: e=\"\\\", max-age=3600\", max-age=1"], .notCached),
        .reuse("quoted value", .optimal, ["Cache-Control: max-age=\"3600\""], .cached),
        .reuse("space before =", .required, ["Cache-Control: max-age =3600"], .notCached),
        .reuse("space after =", .required, ["Cache-Control: max-age= 3600"], .notCached),
        .reuse("leading zeros", .optimal, ["Cache-Control: max-age=003600"], .cached),
        .reuse("single quotes", .required, ["Cache-Control: max-age='3600'"], .notCached),
        .reuse("3600.0", .optimal, ["Cache-Control: max-age=3600.0"], .notCached),
        .reuse("3600.5", .optimal, ["Cache-Control: max-age=3600.5"], .notCached),
        .reuse("a3600", .optimal, ["Cache-Control: max-age=a3600"], .notCached),
        .reuse("3600a", .optimal, ["Cache-Control: max-age=3600a"], .notCached),
        .reuse("empty members", .optimal, ["Cache-Control: , ,max-age=3600,,"], .cached),
        .reuse(
            "invalid is stale even with Last-Modified", .optimal,
            ["Cache-Control: max-age=x", "@Last-Modified: -99999"], .validatedByDate),
        .reuse("max-age without value", .optimal, ["Cache-Control: max-age"], .notCached),
    ]

    package static let age: [Scenario] = [
        .reuse("not a number", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: abc"], .cached),
        .reuse("negative", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: -7200"], .cached),
        .reuse("fraction", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 7200.0"], .cached),
        .reuse("first member old", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 7200,0"], .notCached),
        .reuse(
            "first line old", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 7200", "Age: 0"], .notCached),
        .reuse("first member new", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 0,7200"], .cached),
        .reuse(
            "first line new", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 0", "Age: 7200"], .cached),
        .reuse("twice 0", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 0, 0"], .cached),
        .reuse("twice old", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 7200, 7200"], .notCached),
        .reuse(
            "huge", .required, ["@Date: 0", "Cache-Control: max-age=3600", "Age: 99999999999999999999999"], .notCached),
        .reuse("empty", .optimal, ["@Date: 0", "Cache-Control: max-age=3600", "Age: "], .cached),
    ]

    package static let expires: [Scenario] = [
        .reuse("future", .optimal, ["@Expires: 2592000", "@Date: 0"], .cached),
        .reuse("past", .required, ["@Expires: -2592000", "@Date: 0"], .notCached),
        .reuse("present", .required, ["@Expires: 0", "@Date: 0"], .notCached, after: 0),
        .reuse("before Date, both ahead", .required, ["@Expires: 300", "@Date: 400"], .notCached),
        .reuse("0", .required, ["Expires: 0", "@Date: 0"], .notCached),
        .reuse("invalid Date", .optimal, ["Date: foo", "@Expires: 10"], .cached),
        .reuse("no Date", .optimal, ["@Expires: 10"], .cached),
        .reuse("Age over it, slow Date", .required, ["@Date: -10", "@Expires: 10", "Age: 25"], .notCached, after: 0),
        .reuse("Age over it, fast Date", .required, ["@Date: 10", "@Expires: 20", "Age: 15"], .notCached, after: 0),
        .reuse("case of weekday", .optimal, ["Expires: THU, 18 Aug 2050 02:01:18 GMT", "@Date: 0"], .cached),
        .reuse("case of month", .optimal, ["Expires: Thu, 18 AUG 2050 02:01:18 GMT", "@Date: 0"], .cached),
        .reuse("case of zone", .optimal, ["Expires: Thu, 18 Aug 2050 02:01:18 gMT", "@Date: 0"], .cached),
        .reuse("UTC", .optimal, ["Expires: Thu, 18 Aug 2050 02:01:18 UTC", "@Date: 0"], .notCached),
        .reuse("two digits", .optimal, ["Expires: Thu, 18 Aug 50 02:01:18 GMT", "@Date: 0"], .notCached),
        .reuse("no comma", .optimal, ["Expires: Thu 18 Aug 2050 02:01:18 GMT", "@Date: 0"], .notCached),
        .reuse("spaces", .optimal, ["Expires: Thu, 18  Aug  2050 02:01:18 GMT", "@Date: 0"], .notCached),
        .reuse("dashes", .optimal, ["Expires: Thu, 18-Aug-2050 02:01:18 GMT", "@Date: 0"], .notCached),
        .reuse("periods", .optimal, ["Expires: Thu, 18 Aug 2050 02.01.18 GMT", "@Date: 0"], .notCached),
        .reuse("one digit hour", .optimal, ["Expires: Thu, 18 Aug 2050 2:01:18 GMT", "@Date: 0"], .notCached),
        .reuse("first of two lines", .optimal, ["@Expires: 60", "@Expires: -60", "@Date: 0"], .cached),
    ]

    package static let heuristic: [Scenario] =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map {
            .reuse("\($0)", .optimal, ["@Last-Modified: -86400", "@Date: 0"], .cached, status: $0)
        }
        + [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599].map {
            .reuse("\($0)", .required, ["@Last-Modified: -86400", "@Date: 0"], .notCached, status: $0)
        } + [
            .reuse(
                "599 public", .optimal, ["@Last-Modified: -86400", "@Date: 0", "Cache-Control: public"], .cached,
                status: 599),
            .reuse("within a tenth", .optimal, ["@Last-Modified: -60", "@Date: 0"], .cached),
            .reuse("over a tenth", .optimal, ["@Last-Modified: -20", "@Date: 0"], .validatedByDate),
            .reuse("modified in the future", .required, ["@Last-Modified: 86400", "@Date: 0"], .validatedByDate),
            .reuse(
                "not beyond the ceiling", .required, ["@Last-Modified: -864000000", "@Date: 0"], .validatedByDate,
                after: 86_401),
            .reuse("sets a cookie", .required, ["@Last-Modified: -86400", "@Date: 0", "Set-Cookie: a=b"], .notCached),
            .reuse(
                "sets a cookie, private", .optimal, ["@Last-Modified: -86400", "@Date: 0", "Set-Cookie: a=b"], .cached,
                mode: .private),
        ]

    package static let statuses: [Scenario] = [
        200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599,
    ].flatMap {
        [
            Scenario.reuse(
                "fresh \($0)", .optimal,
                ["@Expires: 100000", "Cache-Control: max-age=100000", "@Last-Modified: 0", "@Date: 0"], .cached,
                status: $0),
            Scenario.reuse(
                "stale \($0)", .required, ["@Expires: -5000", "@Last-Modified: -100000", "@Date: 0"], .notCached,
                status: $0),
        ]
    }

    /// Every table.
    package static let all = cacheControl + parsing + age + expires + heuristic + statuses
}
