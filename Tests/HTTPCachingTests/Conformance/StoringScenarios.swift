import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 3, 3.1, 4.4 and 5.1, RFC 9110 section 9.3.3, RFC 9211 and RFC 9875 seen from outside.
struct StoringScenarios {
    static let hour = "Cache-Control: max-age=3600"

    static let kept = [
        "Test-Header", "X-Test-Header", "Content-Foo", "Cache-Control", "Content-Encoding", "Content-Length",
        "Content-Location", "Content-MD5",
        "Content-Range", "Content-Security-Policy", "Content-Type", "Clear-Site-Data", "ETag", "Expires",
        "Public-Key-Pins", "Set-Cookie", "Set-Cookie2",
        "X-Frame-Options", "X-XSS-Protection", "WWW-Authenticate", "Strict-Transport-Security", "Warning",
    ]
    static let dropped = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade",
    ]

    @Test(arguments: kept) func fieldIsStored(_ name: String) {
        let value = name == "Cache-Control" ? "max-age=3600" : "some-value"
        Scenario(
            name, .required, .shared, .init(responseLines: [Self.hour, "\(name): \(value)"]),
            .init(after: 1, expect: .cached, expectLines: ["\(name): \(value)"])
        ).run()
    }

    @Test(arguments: dropped) func fieldOfAConnectionIsNotStored(_ name: String) {
        Scenario(
            name, .required, .shared, .init(responseLines: [Self.hour, "\(name): some-value"]),
            .init(after: 1, expect: .cached, expectMissing: [name])
        ).run()
    }

    static let scenarios: [Scenario] = [
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

    static let invalidations: [Scenario] =
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

    @Test(arguments: scenarios) func storing(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: invalidations) func invalidation(_ scenario: Scenario) { scenario.run() }

    @Test func anotherHostIsNotInvalidated() {
        let rules = CacheRules(.gateway)
        let answer = response(200, ["Location: https://other.org/resource", "Content-Location: //other.org/x"])
        #expect(
            rules.invalidation(by: answer, to: request("POST"))?.keys.map(\.uri) == ["https://example.org/resource"])
    }

    @Test func interimResponsesChangeNothing() {
        let rules = CacheRules(.gateway)
        for status in [100, 102, 103, 199] {
            let decision = rules.received(
                response(status, [Self.hour, "Link: </a>"]), for: Exchange(request: request("POST"), reason: .method),
                stored: [],
                requestTime: start, responseTime: start)
            #expect(decision.store == nil && decision.invalidation == nil && decision.answer == .asReceived)
            #expect(decision.obstacle == .statusNotFinal)
        }
    }

    @Test func understoodMethodsHaveKeysOfTheirOwn() {
        var options = CachingOptions.gateway
        options.extraMethods = ["QUERY"]
        var cache = ModelCache(options)
        let answer = ModelCache.OriginAnswer(head: response(200, [Self.hour]), body: [1])
        _ = cache.handle(request("QUERY")) { _ in answer }
        #expect(cache.handle(request("QUERY")) { _ in answer }.isCached)
        #expect(!cache.handle(request("GET")) { _ in answer }.isCached)
        _ = cache.handle(request("DELETE"), hasContent: false) { _ in .init(head: response(204), body: []) }
        #expect(!cache.handle(request("QUERY")) { _ in answer }.isCached)
    }

    @Test func setCookieFollowsTheOption() {
        var options = CachingOptions.gateway
        options.setCookie = .neverStore
        Scenario.reuse("never", .optimal, [Self.hour, "Set-Cookie: a=b"], .notCached).run(options)
        options.setCookie = .ignore
        Scenario.reuse("ignored", .optimal, ["@Last-Modified: -86400", "@Date: 0", "Set-Cookie: a=b"], .cached).run(
            options)
    }

    @Test func cacheStatusTellsTheTruth() {
        var cache = ModelCache()
        let lines = ["Cache-Control: max-age=10", "ETag: \"a\"", "Vary: X"]
        let answer: (HTTPRequest) -> ModelCache.OriginAnswer? = { sent in
            sent.headerFields.contains(.ifNoneMatch)
                ? .init(head: response(304, lines), body: []) : .init(head: response(200, lines), body: [1])
        }
        func status(_ request: HTTPRequest) -> String { cache.handle(request, origin: answer).cacheStatus }
        #expect(status(request()) == "larder; fwd=uri-miss; ttl=10; stored")
        #expect(status(request()) == "larder; hit; ttl=10")
        cache.advance(4)
        #expect(status(request()) == "larder; hit; ttl=6")
        #expect(status(request("GET", "/resource", ["X: 1"])) == "larder; fwd=vary-miss; ttl=10; stored")
        #expect(
            status(request("GET", "/resource", ["Cache-Control: no-cache"])) == "larder; fwd=request; fwd-status=304")
        cache.advance(20)
        #expect(status(request()) == "larder; fwd=stale; fwd-status=304")
        #expect(status(request("POST")) == "larder; fwd=method")
        #expect(status(request("GET", "/resource", ["If-Match: \"a\""])).hasPrefix("larder; fwd=bypass"))
    }

    @Test func cacheStatusIsAStructuredField() {
        var status = CacheStatus(
            cacheName: "my cache", outcome: .hit, ttlSeconds: -412, key: "k\"\\", detail: "two words")
        #expect(status.fieldValue == "\"my cache\"; hit; ttl=-412; key=\"k\\\"\\\\\"; detail=\"two words\"")
        status = CacheStatus(
            cacheName: "c", outcome: .forwarded(.miss), forwardStatus: 200, isStored: true, isCollapsed: true, key: "ü",
            detail: "memory")
        #expect(status.fieldValue == "c; fwd=miss; fwd-status=200; stored; collapsed; detail=memory")
        var fields: HTTPFields = [.cacheStatus: "origin; hit"]
        status.append(to: &fields)
        #expect(fields[values: .cacheStatus].count == 2 && fields[values: .cacheStatus][0] == "origin; hit")
    }

    @Test func poisonAttemptsDoNotReachOtherClients() {
        var cache = ModelCache()
        let hostile: (HTTPRequest) -> ModelCache.OriginAnswer? = { sent in
            .init(
                head: response(200, [Self.hour, "X-Echo: \(sent.headerFields[.init("X-Forwarded-Host")!] ?? "-")"]),
                body: [6])
        }
        // Two Host fields, no authority: no key, nothing stored.
        var twoHosts = HTTPRequest(method: .get, scheme: "https", authority: nil, path: "/resource")
        twoHosts.headerFields = fields(["Host: example.org", "Host: evil.org"])
        #expect(cache.handle(twoHosts, origin: hostile).obstacle == .noKey)
        // A request that forbids storing leaves no trace, not even through a 304 or a HEAD.
        _ = cache.handle(request("GET", "/resource", ["Cache-Control: no-store"]), origin: hostile)
        #expect(cache.entries.values.allSatisfy { $0.isEmpty })
        // What a precondition or a range made of the response is not the resource's.
        for (status, line) in [
            (412, "If-Match: \"x\""), (416, "Range: bytes=999-"), (417, "Expect: x"), (431, "X: y"), (400, "X: y"),
        ] {
            _ = cache.handle(request("GET", "/r\(status)", [line])) { _ in
                .init(head: response(status, [Self.hour]), body: [])
            }
            let victim = cache.handle(request("GET", "/r\(status)")) { _ in
                .init(head: response(200, [Self.hour]), body: [1])
            }
            #expect(victim.status == (status == 400 ? 400 : 200))
        }
    }

    @Test func aRequestThatForbidsStoringChangesNothingStored() {
        Scenario(
            "no-store", .required, .shared, .init(responseLines: ["Cache-Control: max-age=2", "ETag: \"a\"", "A: 1"]),
            .init(
                requestLines: ["Cache-Control: no-store"],
                responseLines: ["Cache-Control: max-age=99", "ETag: \"a\"", "A: 2"], after: 3,
                expect: .validatedByTag, expectStatus: 200, expectLines: ["A: 2"]),
            .init(responseLines: ["ETag: \"a\""], expect: .validatedByTag, expectLines: ["A: 1"])
        ).run()
    }
}
