import HTTPCaching
import HTTPTypes

/// RFC 9111 section 4.3 and RFC 9110 section 13 seen from outside.
package enum ValidationScenarios {
    package static let hour = "Cache-Control: max-age=3600"

    package static func conditional(
        _ name: String, _ kind: Scenario.Kind, _ stored: [String], _ lines: [String], status: Int,
        _ expect: Scenario.Expectation = .cached,
        storedStatus: Int = 200, lines expected: [String] = [], missing: [String] = []
    ) -> Scenario {
        Scenario(
            name, kind, .shared, .init(status: storedStatus, responseLines: stored),
            .init(
                requestLines: lines, responseLines: stored, expect: expect, expectStatus: status, expectLines: expected,
                expectMissing: missing))
    }

    package static let received: [Scenario] = [
        conditional(
            "strong tag", .optimal, [hour, "ETag: \"abcdef\""], ["If-None-Match: \"abcdef\""], status: 304,
            lines: ["ETag: \"abcdef\""]),
        conditional("other tag", .required, [hour, "ETag: \"abcdef\""], ["If-None-Match: \"abc\""], status: 200),
        conditional("weak tag", .optimal, [hour, "ETag: W/\"abcdef\""], ["If-None-Match: W/\"abcdef\""], status: 304),
        conditional(
            "weak against strong", .optimal, [hour, "ETag: \"abcdef\""], ["If-None-Match: W/\"abcdef\""], status: 304),
        conditional("obs-text", .optimal, [hour, "ETag: \"abcdefü\""], ["If-None-Match: \"abcdefü\""], status: 304),
        conditional("unquoted request", .optimal, [hour, "ETag: \"abcdef\""], ["If-None-Match: abcdef"], status: 200),
        conditional("unquoted response", .optimal, [hour, "ETag: abcdef"], ["If-None-Match: \"abcdef\""], status: 200),
        conditional(
            "lower case weak", .optimal, [hour, "ETag: w/\"abcdef\""], ["If-None-Match: w/\"abcdef\""], status: 200),
        conditional(
            "first of several", .optimal, [hour, "ETag: \"a\""], ["If-None-Match: \"a\", \"1\", \"2\""], status: 304),
        conditional(
            "middle of several", .optimal, [hour, "ETag: \"a\""], ["If-None-Match: \"1\", \"a\", \"2\""], status: 304),
        conditional(
            "last of several", .optimal, [hour, "ETag: \"a\""], ["If-None-Match: \"1\", \"2\", \"a\""], status: 304),
        conditional(
            "second line", .optimal, [hour, "ETag: \"a\""], ["If-None-Match: \"1\"", "If-None-Match: \"a\""],
            status: 304),
        conditional(
            "comma in a tag", .required, [hour, "ETag: \"a,b\""], ["If-None-Match: \"x\", \"a,b\""], status: 304),
        conditional(
            "backslash in a tag", .required, [hour, "ETag: \"a\\\""], ["If-None-Match: \"a\\\", \"b\""], status: 304),
        conditional("star", .optimal, [hour], ["If-None-Match: *"], status: 304),
        conditional(
            "tag before date", .required, [hour, "ETag: \"a\"", "@Last-Modified: -5000"],
            ["If-None-Match: \"a\"", "@If-Modified-Since: -9999"],
            status: 304),
        conditional(
            "tag before date, no match", .required, [hour, "ETag: \"a\"", "@Last-Modified: -5000"],
            ["If-None-Match: \"b\"", "@If-Modified-Since: -1"], status: 200),
        conditional(
            "tag without stored tag", .required, [hour, "@Last-Modified: -5000"],
            ["If-None-Match: \"b\"", "@If-Modified-Since: 0"], status: 200),
        conditional(
            "same date", .optimal, [hour, "@Last-Modified: -3000", "@Date: 0"], ["@If-Modified-Since: -3000"],
            status: 304),
        conditional(
            "later date", .optimal, [hour, "@Last-Modified: -3000", "@Date: 0"], ["@If-Modified-Since: -2000"],
            status: 304),
        conditional(
            "earlier date", .required, [hour, "@Last-Modified: -3000", "@Date: 0"], ["@If-Modified-Since: -4000"],
            status: 200),
        conditional(
            "no Last-Modified, Date is later", .required, [hour, "@Date: 0"], ["@If-Modified-Since: -3000"], status: 200
        ),
        conditional(
            "no Last-Modified, Date is the same", .optimal, [hour, "@Date: 0"], ["@If-Modified-Since: 0"], status: 304),
        conditional("no date at all", .optimal, [hour], ["@If-Modified-Since: 0"], status: 304),
        conditional(
            "invalid date", .required, [hour, "@Last-Modified: -3000"], ["If-Modified-Since: yesterday"], status: 200),
        conditional(
            "two dates", .required, [hour, "@Last-Modified: -9"], ["@If-Modified-Since: 0", "@If-Modified-Since: 0"],
            status: 200),
        conditional(
            "not for errors", .required, [hour, "ETag: \"a\""], ["If-None-Match: \"a\""], status: 404, storedStatus: 404
        ),
        conditional(
            "If-Match is the origin's", .required, [hour, "ETag: \"a\""], ["If-Match: \"b\""], status: 200, .notCached),
        conditional(
            "If-Unmodified-Since is the origin's", .required, [hour, "ETag: \"a\""], ["@If-Unmodified-Since: 0"],
            status: 200, .notCached),
        conditional(
            "304 keeps what guides caches", .required,
            [
                hour, "ETag: \"a\"", "@Date: 0", "Vary: X", "Content-Location: /c", "@Expires: 60",
                "Content-Type: text/plain", "@Last-Modified: -9",
            ],
            ["If-None-Match: \"a\""], status: 304,
            lines: ["ETag: \"a\"", "@Date: 0", "Vary: X", hour, "Content-Location: /c", "@Expires: 60"],
            missing: ["Content-Type", "Last-Modified", "Content-Length"]),
        Scenario(
            "a rfc850 date", .optimal, .shared,
            .init(responseLines: [hour, "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT"]),
            .init(
                requestLines: ["If-Modified-Since: Tuesday, 14-Nov-23 10:00:00 GMT"], expect: .cached, expectStatus: 304
            )),
        Scenario(
            "stale, validated, then 304", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT"]),
            .init(
                requestLines: ["If-Modified-Since: Tue, 14 Nov 2023 10:00:00 GMT"],
                responseLines: ["Cache-Control: max-age=2", "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT"], after: 3,
                expect: .validatedByDate, expectStatus: 304)),
    ]

    package static let sent: [Scenario] = [
        Scenario(
            "strong tag", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"abcdef\""], body: "x"),
            .init(
                responseLines: ["Cache-Control: max-age=9", "ETag: \"abcdef\""], after: 3, expectStatus: 200,
                expectBody: "x",
                expectSent: ["If-None-Match: \"abcdef\""]),
            .init(after: 5, expect: .cached, expectBody: "x")),
        Scenario(
            "weak tag", .optimal, .shared, .init(responseLines: ["Cache-Control: max-age=2", "ETag: W/\"abcdef\""]),
            .init(
                responseLines: ["ETag: W/\"abcdef\""], after: 3, expectStatus: 200,
                expectSent: ["If-None-Match: W/\"abcdef\""])),
        Scenario(
            "both validators", .optimal, .shared,
            .init(responseLines: [
                "Cache-Control: max-age=2", "ETag: \"a\"", "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT",
            ]),
            .init(
                responseLines: ["ETag: \"a\""], after: 3,
                expectSent: ["If-None-Match: \"a\"", "If-Modified-Since: Tue, 14 Nov 2023 10:00:00 GMT"])),
        Scenario(
            "an unquoted tag is not a validator", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2, stale-if-error=9", "ETag: abcdef"]),
            .init(after: 3, expect: .notCached)),
        Scenario(
            "the client's tags go along", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""]),
            .init(
                requestLines: ["If-None-Match: \"b\""], responseLines: ["ETag: \"a\""], after: 3, expectStatus: 200,
                expectSent: ["If-None-Match: \"a\", \"b\""])),
        Scenario(
            "the client's tag is current", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""], body: "old"),
            .init(requestLines: ["If-None-Match: \"b\""], responseLines: ["ETag: \"b\""], after: 3, expectStatus: 304)),
        Scenario(
            "without a stored response the client's own goes through", .required, .shared,
            .init(
                requestLines: ["If-None-Match: \"x\""], responseLines: ["ETag: \"x\""], expectStatus: 304,
                expectSent: ["If-None-Match: \"x\""])),
        Scenario(
            "304 with another strong tag is not used", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""], body: "old"),
            .init(
                status: 304, responseLines: ["ETag: \"b\""], after: 3, expect: .validatedByTag, expectMissing: ["Age"])),
        Scenario(
            "304 without a validator", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""], body: "old"),
            .init(
                status: 304, responseLines: ["Cache-Control: max-age=9"], after: 3, expectStatus: 200, expectBody: "old"
            ),
            .init(after: 3, expect: .cached)),
        Scenario(
            "a full response replaces", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""], body: "old"),
            .init(
                responseLines: ["Cache-Control: max-age=9", "ETag: \"b\""], body: "new", after: 3, expectBody: "new"),
            .init(after: 3, expect: .cached, expectBody: "new")),
        Scenario(
            "a full response that is not stored removes the old one", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""]),
            .init(responseLines: ["Cache-Control: no-store", "ETag: \"b\""], after: 3),
            .init(isOriginGone: true, expectStatus: 502)),
    ]

    package static func update(_ name: String, old: String, new: String, _ expected: String) -> Scenario {
        let common = ["ETag: \"a\"", "@Date: 0"]
        let control = name == "Cache-Control" ? [] : ["Cache-Control: max-age=2"]
        return Scenario(
            name, .required, .shared, .init(responseLines: common + control + ["\(name): \(old)"]),
            .init(
                responseLines: common + control + ["\(name): \(new)"], after: 3, expect: .validatedByTag,
                expectStatus: 200,
                expectLines: ["\(name): \(expected)"]),
            .init(expect: .cached, expectLines: ["\(name): \(expected)"]))
    }

    package static let updates: [Scenario] =
        [
            "Test-Header", "X-Test-Header", "Content-Foo", "X-Content-Foo", "Content-Type", "Content-Location",
            "Set-Cookie", "Content-Encoding",
        ].map {
            update($0, old: "one", new: "two", "two")
        } + [
            update("Cache-Control", old: "max-age=1", new: "max-age=3600", "max-age=3600"),
            update("Content-Length", old: "4", new: "10", "4"),
            Scenario(
                "what the 304 omits stays", .required, .shared,
                .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\"", "Test-Header: A"]),
                .init(
                    responseLines: ["ETag: \"a\""], after: 3, expect: .validatedByTag, expectLines: ["Test-Header: A"])),
            Scenario(
                "all values of a field are replaced", .required, .shared,
                .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\"", "X: 1", "X: 2"]),
                .init(
                    responseLines: ["Cache-Control: max-age=2", "ETag: \"a\"", "X: 3"], after: 3, expectLines: ["X: 3"])
            ),
            Scenario(
                "the age starts again", .required, .shared,
                .init(responseLines: ["Cache-Control: max-age=40", "ETag: \"a\"", "Age: 30"]),
                .init(responseLines: ["ETag: \"a\""], after: 12, expect: .validatedByTag, expectLines: ["Age: 0"]),
                .init(after: 20, expect: .cached, expectLines: ["Age: 20"])),
            Scenario(
                "a 304 with no-store ends it", .required, .shared,
                .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\""]),
                .init(
                    responseLines: ["Cache-Control: no-store, max-age=9", "ETag: \"a\""], after: 3, expectStatus: 200),
                .init(expect: .notCached)),
        ]

    package static let aged = ["Cache-Control: max-age=2", "Template-A: 1"]
    package static let head: [Scenario] = [
        Scenario(
            "a fresh GET answers HEAD", .optimal, .shared, .init(responseLines: [hour], body: "x"),
            .init(method: "HEAD", expect: .cached, expectStatus: 200, expectBody: "")),
        Scenario(
            "freshened by HEAD", .optimal, .shared, .init(responseLines: aged + ["ETag: \"a\""], body: "x"),
            .init(method: "HEAD", responseLines: [hour, "ETag: \"a\"", "Template-A: 2"], after: 3, expect: .notCached),
            .init(expect: .cached, expectLines: ["Template-A: 2"], expectBody: "x")),
        Scenario(
            "fields that HEAD omits stay", .optimal, .shared,
            .init(responseLines: aged + ["@Last-Modified: -5000", "@Date: 0"]),
            .init(method: "HEAD", responseLines: [hour], after: 3, expectLines: ["Template-A: 1"]),
            .init(expect: .cached)),
        Scenario(
            "made stale by another tag", .required, .shared, .init(responseLines: [hour, "ETag: \"a\""]),
            .init(method: "HEAD", requestLines: ["Cache-Control: no-cache"], responseLines: [hour, "ETag: \"b\""]),
            .init(expect: .validatedByTag)),
        Scenario(
            "made stale by another length", .required, .shared, .init(responseLines: [hour], body: "four"),
            .init(
                method: "HEAD", requestLines: ["Cache-Control: no-cache"], responseLines: [hour, "Content-Length: 5"]),
            .init(expect: .notCached)),
        Scenario(
            "not by an error", .required, .shared, .init(responseLines: aged + ["ETag: \"a\""]),
            .init(method: "HEAD", status: 410, responseLines: [hour, "Template-A: 2"], after: 3, expectStatus: 410),
            .init(after: 3, expect: .validatedByTag)),
        Scenario(
            "a HEAD response alone is not a GET response", .required, .shared,
            .init(method: "HEAD", responseLines: [hour]), .init(expect: .notCached)),
    ]

    /// Every table.
    package static let all = received + sent + updates + head
}
