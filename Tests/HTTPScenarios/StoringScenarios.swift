import HTTPCaching
import HTTPTypes

/// RFC 9111 sections 3, 3.1, 4.4 and 5.1, RFC 9110 section 9.3.3, RFC 9211 and RFC 9875 seen from outside.
package enum StoringScenarios {
    package static let hour = "Cache-Control: max-age=3600"

    package static let kept = [
        "Test-Header", "X-Test-Header", "Content-Foo", "Cache-Control", "Content-Encoding", "Content-Length",
        "Content-Location", "Content-MD5",
        "Content-Range", "Content-Security-Policy", "Content-Type", "Clear-Site-Data", "ETag", "Expires",
        "Public-Key-Pins", "Set-Cookie", "Set-Cookie2",
        "X-Frame-Options", "X-XSS-Protection", "WWW-Authenticate", "Strict-Transport-Security", "Warning",
    ]
    package static let dropped = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade",
    ]

    package static let scenarios: [Scenario] = [
        Scenario(
            "fields that Connection names", .required, .shared,
            .init(responseLines: [hour, "Connection: a, B", "A: 1", "B: 2", "C: 3"]),
            .init(expect: .cached, expectLines: ["C: 3"], expectMissing: ["A", "B", "Connection"])),
        Scenario(
            "Connection cannot lift restrictions", .required, .shared,
            .init(responseLines: [hour, "Connection: cache-control, vary", "Vary: X"]),
            .init(expect: .cached, expectLines: [hour, "Vary: X"])),
        Scenario(
            "all values of a field", .required, .shared,
            .init(responseLines: [hour, "Set-Cookie: a=1", "Set-Cookie: b=2"]),
            .init(expect: .cached, expectLines: ["Set-Cookie: a=1", "Set-Cookie: b=2"])),
        Scenario(
            "Age is made", .required, .shared, .init(responseLines: [hour]),
            .init(after: 3, expect: .cached, expectLines: ["Age: 3"])),
        Scenario(
            "Age is updated, Expires", .required, .shared,
            .init(responseLines: ["@Expires: 9999", "@Date: 0", "Age: 30"]),
            .init(after: 3, expect: .cached, expectLines: ["Age: 33"])),
        Scenario(
            "Age is updated, max-age", .required, .shared, .init(responseLines: [hour, "@Date: 0", "Age: 30"]),
            .init(after: 3, expect: .cached, expectLines: ["Age: 33"])),
        Scenario(
            "Date stays", .required, .shared, .init(responseLines: [hour, "Date: Tue, 14 Nov 2023 22:13:20 GMT"]),
            .init(after: 3, expect: .cached, expectLines: ["Date: Tue, 14 Nov 2023 22:13:20 GMT"])),
        Scenario(
            "a missing Date is added", .required, .shared, .init(responseLines: [hour]),
            .init(after: 3, expect: .cached, expectLines: ["Date: Tue, 14 Nov 2023 22:13:20 GMT"])),
        .reuse(
            "Content-Disposition", .optimal, [hour, "Content-Disposition: attachment; filename=example.txt"], .cached),
        .reuse("Set-Cookie", .optimal, [hour, "Set-Cookie: a=b"], .cached),
        Scenario(
            "POST with Content-Location", .optimal, .shared,
            .init(
                method: "POST", responseLines: ["@Expires: 9999", "Content-Location: /resource", "@Date: 0"], body: "p"),
            .init(after: 3, expect: .cached, expectBody: "p")),
        Scenario(
            "POST with an absolute Content-Location", .optimal, .shared,
            .init(method: "POST", responseLines: [hour, "Content-Location: HTTPS://EXAMPLE.org:443/resource"]),
            .init(expect: .cached)),
        Scenario(
            "POST with another Content-Location", .required, .shared,
            .init(method: "POST", responseLines: [hour, "Content-Location: /other"]), .init(expect: .notCached)),
        Scenario(
            "POST without Content-Location", .required, .shared, .init(method: "POST", responseLines: [hour]),
            .init(expect: .notCached)),
        Scenario(
            "POST without explicit freshness", .required, .shared,
            .init(method: "POST", responseLines: ["@Last-Modified: -99999", "Content-Location: /resource"]),
            .init(expect: .notCached)),
        Scenario(
            "POST is never answered", .required, .shared, .init(responseLines: [hour]),
            .init(method: "POST", expect: .notCached)),
        Scenario(
            "PUT is not stored", .required, .shared,
            .init(method: "PUT", responseLines: [hour, "Content-Location: /resource"]),
            .init(expect: .notCached)),
        .reuse("412", .optimal, [hour], .notCached, status: 412),
        .reuse("416", .optimal, [hour], .notCached, status: 416),
        .reuse("304 out of the blue", .required, [hour], .notCached, status: 304),
        .reuse("101", .required, [hour], .notCached, status: 101),
    ]

    package static let invalidations: [Scenario] =
        ["POST", "PUT", "DELETE", "M-SEARCH", "PATCH", "UNKNOWN"].flatMap { method -> [Scenario] in
            [
                Scenario(
                    "\(method)", .required, .shared, .init(responseLines: [hour]), .init(method: method),
                    .init(expect: .notCached)),
                Scenario(
                    "\(method), redirect", .required, .shared, .init(responseLines: [hour]),
                    .init(method: method, status: 303),
                    .init(expect: .notCached)),
                Scenario(
                    "\(method) failed", .optimal, .shared, .init(responseLines: [hour]),
                    .init(method: method, status: 500), .init(expect: .cached)),
                Scenario(
                    "\(method), Location", .optimal, .shared, .init(path: "/d/l", responseLines: [hour]),
                    .init(method: method, path: "/d/x", responseLines: ["Location: l"]),
                    .init(path: "/d/l", expect: .notCached)),
                Scenario(
                    "\(method), Content-Location", .optimal, .shared, .init(path: "/c?q", responseLines: [hour]),
                    .init(method: method, path: "/d/x", responseLines: ["Content-Location: ../c?q#f"]),
                    .init(path: "/c?q", expect: .notCached)),
            ]
        } + [
            Scenario(
                "another origin's Location", .required, .shared, .init(path: "/l", responseLines: [hour]),
                .init(method: "POST", path: "/x", responseLines: ["Location: http://example.org/l"]),
                .init(path: "/l", expect: .cached)),
            Scenario(
                "OPTIONS", .optimal, .shared, .init(responseLines: [hour]), .init(method: "OPTIONS"),
                .init(expect: .cached)),
            Scenario(
                "PROPFIND", .optimal, .shared, .init(responseLines: [hour]), .init(method: "PROPFIND"),
                .init(expect: .cached)),
            Scenario(
                "a group", .optimal, .shared,
                .init(path: "/a", responseLines: [hour, "Cache-Groups: \"scripts\", \"x\""]),
                .init(path: "/b", responseLines: [hour, "Cache-Groups: \"Scripts\""]),
                .init(method: "POST", path: "/p", responseLines: ["Cache-Group-Invalidation: \"scripts\";a=1"]),
                .init(path: "/a", expect: .notCached),
                .init(path: "/b", expect: .cached)),
            Scenario(
                "no group by a safe method", .required, .shared,
                .init(path: "/a", responseLines: [hour, "Cache-Groups: \"g\""]),
                .init(path: "/p", responseLines: ["Cache-Group-Invalidation: \"g\""]),
                .init(path: "/a", expect: .cached)),
            Scenario(
                "no group by a broken field", .required, .shared,
                .init(path: "/a", responseLines: [hour, "Cache-Groups: \"g\""]),
                .init(method: "POST", path: "/p", responseLines: ["Cache-Group-Invalidation: \"g\", token"]),
                .init(path: "/a", expect: .cached)),
        ]

    /// Every table.
    package static let all = scenarios + invalidations
}
