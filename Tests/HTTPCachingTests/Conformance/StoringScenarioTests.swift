import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 3, 3.1, 4.4 and 5.1, RFC 9110 section 9.3.3, RFC 9211 and RFC 9875 seen from outside.
struct StoringScenarioTests {
    @Test(arguments: StoringScenarios.kept) func fieldIsStored(_ name: String) {
        let value = name == "Cache-Control" ? "max-age=3600" : "some-value"
        Scenario(
            name, .required, .shared, .init(responseLines: [StoringScenarios.hour, "\(name): \(value)"]),
            .init(after: 1, expect: .cached, expectLines: ["\(name): \(value)"])
        ).run()
    }

    @Test(arguments: StoringScenarios.dropped) func fieldOfAConnectionIsNotStored(_ name: String) {
        Scenario(
            name, .required, .shared, .init(responseLines: [StoringScenarios.hour, "\(name): some-value"]),
            .init(after: 1, expect: .cached, expectMissing: [name])
        ).run()
    }

    @Test(arguments: StoringScenarios.scenarios) func storing(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: StoringScenarios.invalidations) func invalidation(_ scenario: Scenario) { scenario.run() }

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
                response(status, [StoringScenarios.hour, "Link: </a>"]),
                for: ForwardedRequest(request: request("POST"), reason: .method),
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
        let answer = ScriptedAnswer(head: response(200, [StoringScenarios.hour]), body: [1])
        _ = cache.handle(request("QUERY")) { _ in answer }
        #expect(cache.handle(request("QUERY")) { _ in answer }.isCached)
        #expect(!cache.handle(request("GET")) { _ in answer }.isCached)
        _ = cache.handle(request("DELETE"), hasContent: false) { _ in .init(head: response(204), body: []) }
        #expect(!cache.handle(request("QUERY")) { _ in answer }.isCached)
    }

    @Test func setCookieFollowsTheOption() {
        var options = CachingOptions.gateway
        options.setCookie = .neverStore
        Scenario.reuse("never", .optimal, [StoringScenarios.hour, "Set-Cookie: a=b"], .notCached).run(options)
        options.setCookie = .ignore
        Scenario.reuse("ignored", .optimal, ["@Last-Modified: -86400", "@Date: 0", "Set-Cookie: a=b"], .cached).run(
            options)
    }

    @Test func cacheStatusTellsTheTruth() {
        var cache = ModelCache()
        let lines = ["Cache-Control: max-age=10", "ETag: \"a\"", "Vary: X"]
        let answer: (HTTPRequest) -> ScriptedAnswer? = { sent in
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
        #expect("\(status)" == status.fieldValue)
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
        let hostile: (HTTPRequest) -> ScriptedAnswer? = { sent in
            .init(
                head: response(
                    200, [StoringScenarios.hour, "X-Echo: \(sent.headerFields[.init("X-Forwarded-Host")!] ?? "-")"]),
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
                .init(head: response(status, [StoringScenarios.hour]), body: [])
            }
            let victim = cache.handle(request("GET", "/r\(status)")) { _ in
                .init(head: response(200, [StoringScenarios.hour]), body: [1])
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
