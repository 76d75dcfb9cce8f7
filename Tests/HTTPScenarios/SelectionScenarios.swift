import HTTPCaching
import HTTPTypes

/// RFC 9111 section 4.1, section 2 and RFC 9110 section 4.2.3 seen from outside.
package enum SelectionScenarios {
    package static func vary(
        _ name: String, _ kind: Scenario.Kind, _ vary: String, _ first: [String], _ second: [String],
        _ expect: Scenario.Expectation
    )
        -> Scenario
    {
        let lines = ["Cache-Control: max-age=5000", "@Last-Modified: -3000", "@Date: 0", "Vary: \(vary)"]
        return Scenario(
            name, kind, .shared, .init(requestLines: first, responseLines: lines),
            .init(requestLines: second, responseLines: lines, expect: expect))
    }

    package static let scenarios: [Scenario] = [
        vary("match", .optimal, "Foo", ["Foo: 1"], ["Foo: 1"], .cached),
        vary("no match", .required, "Foo", ["Foo: 1"], ["Foo: 2"], .notCached),
        vary("stored request omits it", .required, "Foo", [], ["Foo: 1"], .notCached),
        vary("presented request omits it", .required, "Foo", ["Foo: 1"], [], .notCached),
        vary("empty is not absent", .required, "Foo", ["Foo: "], [], .notCached),
        vary("other fields do not count", .optimal, "Foo", ["Foo: 1", "Other: 2"], ["Foo: 1", "Other: 3"], .cached),
        vary("two match", .optimal, "Foo, Bar", ["Foo: 1", "Bar: abc"], ["Foo: 1", "Bar: abc"], .cached),
        vary("two, one differs", .required, "Foo, Bar", ["Foo: 1", "Bar: abc"], ["Foo: 2", "Bar: abc"], .notCached),
        vary("two, omitted", .required, "Foo, Bar", ["Foo: 1", "Bar: abc"], [], .notCached),
        vary(
            "three match", .optimal, "Foo, Bar, Baz", ["Foo: 1", "Bar: a", "Baz: 7"], ["Baz: 7", "Foo: 1", "Bar: a"],
            .cached),
        vary(
            "three, one differs", .required, "Foo, Bar, Baz", ["Foo: 1", "Bar: a", "Baz: 7"],
            ["Foo: 1", "Baz: 7", "Bar: ab"], .notCached),
        vary("three, both omit one", .optimal, "Foo, Bar, Baz", ["Foo: 1", "Baz: 7"], ["Foo: 1", "Baz: 7"], .cached),
        vary("star", .required, "*", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("star, star", .required, "*, *", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("empty, star", .required, ", *", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("star, Foo", .required, "*, Foo", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("Foo, star", .required, "Foo, *", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("not a name", .required, "Foo Bar", ["Foo: 1"], ["Foo: 1"], .notCached),
        vary("name without case", .required, "FOO", ["foo: 1"], ["Foo: 2"], .notCached),
        vary("lines are combined", .optimal, "Foo", ["Foo: 1, 2"], ["Foo: 1", "Foo: 2"], .cached),
        vary("white space", .optimal, "Foo", ["Foo: 1,2"], ["Foo:  1, 2 "], .cached),
        vary("white space in quotes", .required, "Foo", ["Foo: \"1,2\""], ["Foo: \"1, 2\""], .notCached),
        vary("order of unknown lists", .required, "Foo", ["Foo: 1, 2"], ["Foo: 2, 1"], .notCached),
        vary("case of unknown fields", .required, "Foo", ["Foo: a"], ["Foo: A"], .notCached),
        vary(
            "language order", .required, "Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: de, en"],
            .notCached),
        vary(
            "order of equal weights", .required, "Accept-Language", ["Accept-Language: fr, en;q=0.5, de;q=0.5"],
            ["Accept-Language: fr, de;q=0.5, en;q=0.5"], .notCached),
        vary(
            "order of media ranges", .required, "Accept", ["Accept: text/html, application/json"],
            ["Accept: application/json, text/html"], .notCached),
        vary(
            "language case", .optimal, "Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: eN, De"],
            .cached),
        vary(
            "language space", .optimal, "Accept-Language", ["Accept-Language: en, de"], ["Accept-Language:  en ,   de"],
            .cached),
        vary(
            "language weight spelling", .optimal, "Accept-Language", ["Accept-Language: en;q=1.0, de;q=0.50"],
            ["Accept-Language: de;q=0.5,en"], .cached),
        vary(
            "language weights differ", .required, "Accept-Language", ["Accept-Language: en, de;q=0.5"],
            ["Accept-Language: en, de;q=0.6"], .notCached),
        vary(
            "encodings", .optimal, "Accept-Encoding", ["Accept-Encoding: gzip, br"], ["Accept-Encoding: BR,GZip"],
            .cached),
        vary(
            "media ranges", .optimal, "Accept", ["Accept: text/html, */*;q=0.1"], ["Accept: */*; q=0.1,Text/HTML"],
            .cached),
        Scenario(
            "two variants", .optimal, .shared,
            .init(requestLines: ["Foo: 1"], responseLines: ["Cache-Control: max-age=99", "Vary: Foo"], body: "one"),
            .init(
                requestLines: ["Foo: 2"], responseLines: ["Cache-Control: max-age=99", "Vary: Foo"], body: "two",
                expect: .notCached),
            .init(requestLines: ["Foo: 1"], expect: .cached, expectBody: "one")),
        Scenario(
            "star on a line of its own", .required, .shared,
            .init(requestLines: ["Foo: 1"], responseLines: ["Cache-Control: max-age=99", "Vary: ", "Vary: *"]),
            .init(requestLines: ["Foo: 1"], expect: .notCached)),
        Scenario(
            "the preferred language, by weight", .optimal, .shared,
            .init(
                requestLines: ["Accept-Language: en, de"],
                responseLines: ["Cache-Control: max-age=99", "Vary: Accept-Language", "Content-Language: de"]),
            .init(requestLines: ["Accept-Language: fr;q=0.5, de;q=1.0"], expect: .cached),
            .init(requestLines: ["Accept-Language: fr, de"], expect: .notCached)),
        Scenario(
            "the language does not excuse another field", .required, .shared,
            .init(
                requestLines: ["Accept-Language: en", "Cookie: a"],
                responseLines: ["Cache-Control: max-age=99", "Vary: Accept-Language, Cookie", "Content-Language: de"]),
            .init(requestLines: ["Accept-Language: de", "Cookie: b"], expect: .notCached)),
        Scenario(
            "a response with Vary goes before one without", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=99", "@Date: 1"], body: "plain"),
            .init(
                requestLines: ["Foo: 1", "Cache-Control: no-cache"],
                responseLines: ["Cache-Control: max-age=99", "Vary: Foo"], body: "vary"),
            .init(requestLines: ["Foo: 1"], after: 1, expect: .cached, expectBody: "vary")),
        Scenario(
            "a changed variant does not validate with the other's tag", .optimal, .shared,
            .init(
                requestLines: ["Abc: 123"],
                responseLines: ["@Expires: 10000", "ETag: \"abcdef\"", "@Date: 0", "Vary: Abc"]),
            .init(requestLines: ["Abc: 456"], expect: .notCached)),
        Scenario(
            "nominated fields go along with a validation", .required, .shared,
            .init(
                requestLines: ["Abc: 123"], responseLines: ["@Expires: 1", "ETag: \"abcdef\"", "@Date: 0", "Vary: Abc"]),
            .init(
                requestLines: ["Abc: 123"], responseLines: ["ETag: \"abcdef\"", "Vary: Abc"], after: 3,
                expect: .validatedByTag,
                expectSent: ["Abc: 123"])),
        Scenario(
            "different queries", .required, .shared,
            .init(path: "/a?test=1", responseLines: ["Cache-Control: max-age=99"]),
            .init(path: "/a?test=2", expect: .notCached)),
        Scenario(
            "the same query", .optimal, .shared, .init(path: "/a?test=1", responseLines: ["Cache-Control: max-age=99"]),
            .init(path: "/a?test=1", expect: .cached)),
        Scenario(
            "a slash at the end", .required, .shared, .init(path: "/a", responseLines: ["Cache-Control: max-age=99"]),
            .init(path: "/a/", expect: .notCached)),
        Scenario(
            "percent-encoding is the origin's", .required, .shared,
            .init(path: "/a%2Fb", responseLines: ["Cache-Control: max-age=99"]),
            .init(path: "/a/b", expect: .notCached)),
        Scenario(
            "dots are the origin's", .required, .shared,
            .init(path: "/x/../a", responseLines: ["Cache-Control: max-age=99"]),
            .init(path: "/a", expect: .notCached)),
        Scenario(
            "GET with content is neither stored nor answered", .required, .shared, .init(responseLines: []),
            .init(expect: .notCached)),
    ]

    /// Every table.
    package static let all = scenarios
}
