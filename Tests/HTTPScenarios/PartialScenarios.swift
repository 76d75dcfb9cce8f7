import HTTPCaching
import HTTPTypes

/// RFC 9111 sections 3.3 and 3.4 and RFC 9110 section 14 seen from outside.
package enum PartialScenarios {
    package static let hour = "Cache-Control: max-age=3600"

    package static func complete(
        _ name: String, _ range: String, _ status: Int, _ body: String?, _ lines: [String] = [], also: [String] = []
    ) -> Scenario {
        Scenario(
            name, .optimal, .shared,
            .init(responseLines: [hour, "ETag: \"s\"", "Content-Type: text/plain"], body: "0123456789A"),
            .init(
                requestLines: ["Range: \(range)"] + also, expect: .cached, expectStatus: status, expectLines: lines,
                expectBody: body))
    }

    package static let fromComplete: [Scenario] = [
        complete(
            "first and last", "bytes=0-1", 206, "01",
            ["Content-Range: bytes 0-1/11", "Content-Length: 2", "Content-Type: text/plain"]),
        complete("no last", "bytes=1-", 206, "123456789A", ["Content-Range: bytes 1-10/11"]),
        complete("suffix", "bytes=-1", 206, "A", ["Content-Range: bytes 10-10/11"]),
        complete("suffix longer than all", "bytes=-99", 206, "0123456789A", ["Content-Range: bytes 0-10/11"]),
        complete("last beyond the end", "bytes=9-99", 206, "9A", ["Content-Range: bytes 9-10/11"]),
        complete("last beyond all numbers", "bytes=9-99999999999999999999999999", 206, "9A"),
        complete("upper case unit", "BYTES=0-1", 206, "01"),
        complete("not satisfiable", "bytes=11-", 416, "", ["Content-Range: bytes */11"]),
        complete("empty suffix", "bytes=-0", 416, ""),
        complete("last before first", "bytes=2-1", 200, "0123456789A"),
        complete("broken", "bytes=a-b", 200, "0123456789A"),
        complete("broken list", "bytes=0-1,x", 200, "0123456789A"),
        complete("nothing", "bytes=", 200, "0123456789A"),
        complete("overlapping become one", "bytes=0-3,2-5", 206, "012345", ["Content-Range: bytes 0-5/11"]),
        complete("one of two is satisfiable", "bytes=0-1,50-", 206, "01", ["Content-Range: bytes 0-1/11"]),
        complete("If-Range, same", "bytes=0-1", 206, "01", [], also: ["If-Range: \"s\""]),
        complete("If-Range, other", "bytes=0-1", 200, "0123456789A", [], also: ["If-Range: \"t\""]),
        complete("If-Range, weak", "bytes=0-1", 200, "0123456789A", [], also: ["If-Range: W/\"s\""]),
        complete("If-None-Match goes first", "bytes=0-1", 304, "", [], also: ["If-None-Match: \"s\""]),
        complete("two lines are ignored", "bytes=0-1", 200, "0123456789A", [], also: ["Range: bytes=3-4"]),
        Scenario(
            "not for other statuses", .required, .shared, .init(status: 404, responseLines: [hour], body: "0123"),
            .init(requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 404, expectBody: "0123")),
        Scenario(
            "not for HEAD", .required, .shared, .init(responseLines: [hour], body: "0123"),
            .init(method: "HEAD", requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 200)),
        Scenario(
            "another unit goes to the origin", .required, .shared, .init(responseLines: [hour], body: "0123"),
            .init(requestLines: ["Range: lines=0-1"], expect: .notCached)),
        Scenario(
            "If-Range with a strong date", .optimal, .shared,
            .init(responseLines: [hour, "@Date: 0", "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT"], body: "0123"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 10:00:00 GMT"], expect: .cached,
                expectStatus: 206,
                expectBody: "01"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 10:00:01 GMT"], expect: .cached,
                expectStatus: 200)),
        Scenario(
            "If-Range with a weak date", .required, .shared,
            .init(
                responseLines: [
                    hour, "Date: Tue, 14 Nov 2023 22:13:20 GMT", "Last-Modified: Tue, 14 Nov 2023 22:13:19 GMT",
                ], body: "0123"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 22:13:19 GMT"], expect: .cached,
                expectStatus: 200)),
        Scenario(
            "the stored fields are used", .required, .shared,
            .init(responseLines: [hour, "A: 1"], body: "01234567890"),
            .init(
                requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 206, expectLines: ["A: 1"],
                expectBody: "01")),
        Scenario(
            "stale: validated, then a range", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=1", "ETag: \"a\""], body: "0123"),
            .init(
                requestLines: ["Range: bytes=1-2"], responseLines: ["ETag: \"a\"", "A: 2"], after: 3,
                expect: .validatedByTag, expectStatus: 206,
                expectLines: ["A: 2"], expectBody: "12")),
    ]

    /// A stored part, then a request.
    package static func part(
        _ name: String, _ kind: Scenario.Kind, _ contentRange: String, _ body: String, _ lines: [String],
        _ expect: Scenario.Expectation,
        status: Int? = nil, gives: String? = nil, sent: [String] = []
    ) -> Scenario {
        Scenario(
            name, kind, .shared,
            .init(
                requestLines: ["Range: bytes=-5"], status: 206,
                responseLines: [hour, "Content-Range: \(contentRange)"], body: body,
                expectSent: ["Range: bytes=-5"]),
            .init(requestLines: lines, expect: expect, expectStatus: status, expectBody: gives, expectSent: sent))
    }

    package static let fromPart: [Scenario] = [
        part("the same", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=-5"], .cached, status: 206, gives: "56789"),
        part("smaller", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=6-8"], .cached, status: 206, gives: "678"),
        part("no last", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=6-"], .cached, status: 206, gives: "6789"),
        part("suffix", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=-1"], .cached, status: 206, gives: "9"),
        part("outside", .required, "bytes 5-9/10", "56789", ["Range: bytes=4-6"], .notCached),
        part("whole", .required, "bytes 3-6/10", "3456", [], .notCached),
        part("not satisfiable", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=10-"], .cached, status: 416),
        part(
            "unknown length, inside", .optimal, "bytes 5-9/*", "56789", ["Range: bytes=6-7"], .cached, status: 206,
            gives: "67"),
        part("unknown length, suffix", .required, "bytes 5-9/*", "56789", ["Range: bytes=-1"], .notCached),
        part("other unit is not kept", .required, "lines 5-9/10", "56789", ["Range: bytes=5-9"], .notCached),
        part("invalid range is not kept", .required, "bytes 5-9/9", "56789", ["Range: bytes=5-9"], .notCached),
        part("more bytes than said are not kept", .required, "bytes 5-8/10", "56789", ["Range: bytes=5-8"], .notCached),
        // The content is one byte shorter than Content-Range says: the framing decides.
        part(
            "short, the same", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=-5"], .cached, status: 206,
            gives: "01234"),
        part(
            "short, inside", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=6-8"], .cached, status: 206, gives: "234"
        ),
        part(
            "short, no last", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=6-"], .cached, status: 206, gives: "234"
        ),
        part("short, suffix", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=-1"], .cached, status: 206, gives: "4"),
        part("the rest is asked for", .optimal, "bytes 0-4/10", "01234", [], .notCached, sent: ["Range: bytes=5-"]),
        part(
            "the beginning is asked for", .optimal, "bytes 5-9/10", "56789", [], .notCached, sent: ["Range: bytes=0-4"]),
    ]

    /// Every table.
    package static let all = fromComplete + fromPart
}
