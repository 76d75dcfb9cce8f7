import HTTPCaching
import HTTPTypes

/// What one client must not get of another's exchange, seen from outside: RFC 9111 sections 3.5, 4.1, 4.3.4 and 7.
package enum LeakScenarios {
    private static let hour = "Cache-Control: max-age=3600"

    /// Cookies that an update brings: a 304, an answer to HEAD or a 206.
    package static let cookies: [Scenario] = [
        Scenario(
            "a 304's cookie is for the client that asked", .required, .shared,
            .init(responseLines: ["Cache-Control: no-cache", "ETag: \"1\""], body: "page"),
            .init(
                responseLines: ["Cache-Control: no-cache", "ETag: \"1\"", "Set-Cookie: sid=A"],
                expect: .validatedByTag, expectStatus: 200, expectLines: ["Set-Cookie: sid=A"], expectBody: "page"),
            .init(
                responseLines: ["Cache-Control: no-cache", "ETag: \"1\""], expect: .validatedByTag, expectStatus: 200,
                expectMissing: ["Set-Cookie"], expectBody: "page")),
        Scenario(
            "a 304's cookie without freshness of its own", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""]),
            .init(
                responseLines: ["ETag: \"1\"", "Set-Cookie: sid=A"], after: 3, expect: .validatedByTag,
                expectLines: ["Set-Cookie: sid=A"]),
            .init(after: 1, expect: .cached, expectMissing: ["Set-Cookie"])),
        Scenario(
            "a 304's cookie that the origin shares", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""]),
            .init(
                responseLines: ["Cache-Control: public, max-age=60", "ETag: \"1\"", "Set-Cookie: theme=dark"], after: 3,
                expect: .validatedByTag, expectLines: ["Set-Cookie: theme=dark"]),
            .init(after: 1, expect: .cached, expectLines: ["Set-Cookie: theme=dark"])),
        Scenario(
            "a 304's cookie in a private cache", .optimal, .private,
            .init(responseLines: ["Cache-Control: no-cache", "ETag: \"1\""]),
            .init(responseLines: ["Cache-Control: no-cache", "ETag: \"1\"", "Set-Cookie: sid=A"]),
            .init(
                responseLines: ["Cache-Control: no-cache", "ETag: \"1\""], expect: .validatedByTag,
                expectLines: ["Set-Cookie: sid=A"])),
        Scenario(
            "the cookie of an answer to HEAD", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""]),
            .init(
                method: "HEAD", responseLines: ["ETag: \"1\"", "Set-Cookie: sid=A"], after: 3,
                expectLines: ["Set-Cookie: sid=A"]),
            .init(after: 1, expect: .cached, expectMissing: ["Set-Cookie"])),
        Scenario(
            "the cookie of a part of what is stored", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""], body: "0123456789"),
            .init(
                requestLines: ["Range: bytes=0-3"], status: 206,
                responseLines: ["ETag: \"1\"", "Content-Range: bytes 0-3/10", "Set-Cookie: sid=A"], body: "0123",
                after: 3, expectStatus: 206, expectLines: ["Set-Cookie: sid=A"], expectBody: "0123"),
            .init(after: 1, expect: .cached, expectMissing: ["Set-Cookie"], expectBody: "0123456789")),
        Scenario(
            "a cookie with a lifetime of 0", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=0", "ETag: \"1\"", "Set-Cookie: sid=A"], body: "page"),
            .init(
                responseLines: ["Cache-Control: max-age=0", "ETag: \"1\""], body: "page", expectMissing: ["Set-Cookie"])
        ),
        Scenario(
            "a cookie with no-cache and a lifetime", .required, .shared,
            .init(
                responseLines: ["Cache-Control: no-cache, max-age=60", "ETag: \"1\"", "Set-Cookie: sid=A"], body: "page"
            ),
            .init(
                responseLines: ["Cache-Control: no-cache, max-age=60", "ETag: \"1\""], body: "page",
                expectMissing: ["Set-Cookie"])),
        Scenario(
            "a cookie that has expired", .required, .shared,
            .init(
                responseLines: ["Expires: Thu, 19 Nov 1981 08:52:00 GMT", "ETag: \"1\"", "Set-Cookie: sid=A"],
                body: "page"),
            .init(responseLines: ["ETag: \"1\""], body: "page", expectMissing: ["Set-Cookie"])),
        Scenario(
            "a 304's cookie that has expired", .required, .shared,
            .init(responseLines: ["Cache-Control: no-cache", "ETag: \"1\""], body: "page"),
            .init(
                responseLines: ["Expires: 0", "Cache-Control: x", "ETag: \"1\"", "Set-Cookie: sid=A"],
                expect: .validatedByTag, expectLines: ["Set-Cookie: sid=A"], expectBody: "page"),
            .init(
                responseLines: ["Cache-Control: no-cache", "ETag: \"1\""], expect: .validatedByTag,
                expectMissing: ["Set-Cookie"], expectBody: "page")),
    ]

    /// `Vary` in an update.
    package static let vary: [Scenario] = [
        Scenario(
            "a 304 that brings Vary", .required, .shared,
            .init(
                requestLines: ["Accept-Language: en"], responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""],
                body: "english"),
            .init(
                requestLines: ["Accept-Language: en"], responseLines: [hour, "ETag: \"1\"", "Vary: Accept-Language"],
                after: 3, expect: .validatedByTag, expectStatus: 200, expectBody: "english"),
            .init(
                requestLines: ["Accept-Language: fr"], responseLines: [hour, "Vary: Accept-Language"], body: "french",
                expect: .notCached, expectBody: "french")),
        Scenario(
            "a 304 that brings Vary: *", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"1\""], body: "page"),
            .init(
                responseLines: [hour, "ETag: \"1\"", "Vary: *"], after: 3, expect: .validatedByTag, expectBody: "page"),
            .init(responseLines: [hour], body: "next", expect: .notCached, expectBody: "next")),
        Scenario(
            "a 304 that names no more than the stored response", .optimal, .shared,
            .init(
                requestLines: ["Foo: 1"], responseLines: ["Cache-Control: max-age=2", "ETag: \"1\"", "Vary: Foo, Bar"]),
            .init(
                requestLines: ["Foo: 1"], responseLines: [hour, "ETag: \"1\"", "Vary: bar"], after: 3,
                expect: .validatedByTag),
            .init(requestLines: ["Foo: 1"], expect: .cached)),
        Scenario(
            "the order of languages is the user's", .required, .shared,
            .init(
                requestLines: ["Accept-Language: en, fr"], responseLines: [hour, "Vary: Accept-Language"],
                body: "english"),
            .init(
                requestLines: ["Accept-Language: fr, en"], responseLines: [hour, "Vary: Accept-Language"],
                body: "french",
                expect: .notCached, expectBody: "french"),
            .init(requestLines: ["Accept-Language: EN,fr;q=1.0"], expect: .cached, expectBody: "english")),
    ]

    /// Responses that answer a request rather than its target.
    package static let requests: [Scenario] = [
        Scenario(
            "a 401 answers requests without credentials only", .required, .shared,
            .init(status: 401, responseLines: [hour]),
            .init(
                requestLines: ["Authorization: Basic eA=="], responseLines: [], body: "secret", expect: .notCached,
                expectStatus: 200, expectBody: "secret")),
        Scenario(
            "a part for the client's own If-Range has no metadata", .required, .shared,
            .init(
                requestLines: ["Range: bytes=0-3", "If-Range: \"1\""], status: 206,
                responseLines: [hour, "ETag: \"1\"", "Content-Range: bytes 0-3/4"], body: "part", expectStatus: 206),
            .init(
                responseLines: [hour, "ETag: \"1\"", "Content-Type: text/plain"], body: "part", expect: .notCached,
                expectStatus: 200, expectLines: ["Content-Type: text/plain"])),
        Scenario(
            "a 304 that was not asked for", .required, .shared,
            .init(status: 304, responseLines: ["ETag: \"1\""], expectStatus: 502)),
        Scenario(
            "a 206 that was not asked for", .required, .shared,
            .init(
                status: 206, responseLines: [hour, "ETag: \"1\"", "Content-Range: bytes 0-3/9"], body: "part",
                expectStatus: 502),
            .init(responseLines: [hour], body: "whole", expect: .notCached, expectBody: "whole")),
        Scenario(
            "5xx without a validation is the answer", .required, .shared,
            .init(responseLines: ["Cache-Control: max-age=2"]), .init(status: 503, after: 3, expectStatus: 503)),
        Scenario(
            "If-Range with a date, no Date from the origin", .optimal, .shared,
            .init(
                responseLines: [hour, "Last-Modified: Tue, 14 Nov 2023 20:13:20 GMT", "Content-Length: 4"], body: "body"
            ),
            .init(
                requestLines: ["Range: bytes=1-2", "If-Range: Tue, 14 Nov 2023 20:13:20 GMT"], expect: .cached,
                expectStatus: 206, expectBody: "od")),
    ]

    /// Fields of the connection, which only a cache with a connection sees.
    package static let connection: [Scenario] = [
        Scenario(
            "Connection names a field that Vary nominates", .required, .shared,
            .init(
                requestLines: ["Accept-Language: fr", "Connection: Accept-Language"],
                responseLines: [hour, "Vary: Accept-Language"], body: "english"),
            .init(
                requestLines: ["Accept-Language: fr"], responseLines: [hour, "Vary: Accept-Language"], body: "french",
                expect: .notCached, expectBody: "french"),
            .init(expect: .cached, expectBody: "english")),
        Scenario(
            "Connection names a range", .required, .shared,
            .init(
                requestLines: ["Range: bytes=0-1", "Connection: range"], responseLines: [hour], body: "body",
                expectStatus: 200, expectBody: "body"),
            .init(requestLines: ["Range: bytes=0-1", "Connection: range"], expect: .cached, expectStatus: 200)),
    ]

    /// Every table of the rules.
    package static let all = cookies + vary + requests
}
