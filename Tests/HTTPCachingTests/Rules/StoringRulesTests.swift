import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 section 3, condition by condition.
struct StoringRulesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var mode = CacheMode.shared
        var method = "GET"
        var requestLines: [String] = []
        var status = 200
        var lines: [String]
        var hasContent = false
        var obstacle: StoringObstacle?
        var testDescription: String { name }
    }

    static let cases: [Case] = [
        Case(name: "explicit freshness", lines: ["Cache-Control: max-age=1"]),
        Case(name: "validator only", lines: ["ETag: \"a\""]),
        Case(name: "nothing", lines: [], obstacle: .neverReusable),
        Case(name: "stale without validator", lines: ["Cache-Control: max-age=0"], obstacle: .neverReusable),
        Case(name: "stale without validator, stale-if-error", lines: ["Cache-Control: max-age=0, stale-if-error=9"]),
        Case(
            name: "unknown method", method: "FOO", lines: ["Cache-Control: max-age=1"], obstacle: .methodNotUnderstood),
        Case(name: "OPTIONS", method: "OPTIONS", lines: ["Cache-Control: max-age=1"], obstacle: .methodNotUnderstood),
        Case(name: "HEAD", method: "HEAD", lines: ["Cache-Control: max-age=1"], obstacle: .headResponse),
        Case(name: "interim", status: 103, lines: ["Cache-Control: max-age=1"], obstacle: .statusNotFinal),
        Case(name: "304", status: 304, lines: ["Cache-Control: max-age=1"], obstacle: .statusNotUnderstood),
        Case(name: "unknown status", status: 599, lines: ["Cache-Control: max-age=1"]),
        Case(name: "unknown status, nothing", status: 599, lines: ["ETag: \"a\""], obstacle: .notCacheable),
        Case(
            name: "unknown status, must-understand", status: 599, lines: ["Cache-Control: max-age=1, must-understand"],
            obstacle: .statusNotUnderstood),
        Case(name: "no-store", lines: ["Cache-Control: max-age=1, no-store"], obstacle: .noStore),
        Case(name: "no-store, must-understand", lines: ["Cache-Control: max-age=1, no-store, must-understand"]),
        Case(name: "private, shared", lines: ["Cache-Control: max-age=1, private"], obstacle: .privateResponse),
        Case(name: "private, private", mode: .private, status: 201, lines: ["Cache-Control: private", "ETag: \"a\""]),
        Case(name: "qualified private, shared", lines: ["Cache-Control: max-age=1, private=\"x\""]),
        Case(
            name: "qualified private makes nothing cacheable", status: 201,
            lines: ["Cache-Control: private=\"x\"", "ETag: \"a\""], obstacle: .notCacheable),
        Case(
            name: "Authorization", requestLines: ["Authorization: x"], lines: ["Cache-Control: max-age=1"],
            obstacle: .authorization),
        Case(
            name: "Authorization, private cache", mode: .private, requestLines: ["Authorization: x"],
            lines: ["Cache-Control: max-age=1"]),
        Case(
            name: "Authorization, public", requestLines: ["Authorization: x"],
            lines: ["Cache-Control: max-age=1, public"]),
        Case(name: "201 s-maxage, shared", status: 201, lines: ["Cache-Control: s-maxage=1"]),
        Case(
            name: "201 s-maxage, private", mode: .private, status: 201,
            lines: ["Cache-Control: s-maxage=1", "ETag: \"a\""], obstacle: .notCacheable),
        Case(name: "201 public", status: 201, lines: ["Cache-Control: public", "ETag: \"a\""]),
        Case(name: "201 Expires", status: 201, lines: ["@Expires: 9"]),
        Case(
            name: "request no-store", requestLines: ["Cache-Control: no-store"], lines: ["Cache-Control: max-age=1"],
            obstacle: .requestNoStore),
        Case(name: "Vary star", lines: ["Cache-Control: max-age=1", "Vary: a, *"], obstacle: .varyMatchesNothing),
        Case(
            name: "GET with content", lines: ["Cache-Control: max-age=1"], hasContent: true,
            obstacle: .requestHasContent),
        Case(
            name: "POST", method: "POST", lines: ["Cache-Control: max-age=1"], hasContent: true,
            obstacle: .postNotReusable),
        Case(
            name: "POST, two locations", method: "POST",
            lines: ["Cache-Control: max-age=1", "Content-Location: /resource", "Content-Location: /resource"],
            obstacle: .postNotReusable),
        Case(name: "421", status: 421, lines: ["Cache-Control: max-age=1"], obstacle: .dependsOnRequest),
        Case(name: "428", status: 428, lines: ["Cache-Control: public, max-age=1"], obstacle: .dependsOnRequest),
        Case(name: "429", status: 429, lines: ["Cache-Control: public, max-age=1"], obstacle: .dependsOnRequest),
        Case(name: "431", status: 431, lines: ["Cache-Control: public, max-age=1"], obstacle: .dependsOnRequest),
        Case(name: "511", status: 511, lines: ["Cache-Control: public, max-age=1"], obstacle: .dependsOnRequest),
        Case(name: "404 with a validator alone", status: 404, lines: ["ETag: \"a\""], obstacle: .neverReusable),
        Case(
            name: "broken s-maxage, Authorization", requestLines: ["Authorization: x"],
            lines: ["Cache-Control: s-maxage=foo, max-age=60"], obstacle: .authorization),
        Case(
            name: "broken s-maxage, not cacheable by itself", status: 500,
            lines: ["Cache-Control: s-maxage=foo", "ETag: \"a\""], obstacle: .notCacheable),
        Case(
            name: "broken max-age, not cacheable by itself", status: 500,
            lines: ["Cache-Control: max-age=", "ETag: \"a\""], obstacle: .notCacheable),
        Case(
            name: "broken private, not cacheable by itself", mode: .private, status: 302,
            lines: ["Cache-Control: private=", "ETag: \"a\""], obstacle: .notCacheable),
        Case(
            name: "broken must-revalidate, Authorization", requestLines: ["Authorization: x"],
            lines: ["Cache-Control: must-revalidate=foo, max-age=60"], obstacle: .authorization),
        Case(
            name: "public = x, Authorization", requestLines: ["Authorization: x"],
            lines: ["Cache-Control: public = x, max-age=60"], obstacle: .authorization),
        Case(
            name: "public beside another word, Authorization", requestLines: ["Authorization: x"],
            lines: ["Cache-Control: public max-age=60"], obstacle: .authorization),
        Case(
            name: "must-understand =1, no-store", lines: ["Cache-Control: must-understand =1, no-store, max-age=60"],
            obstacle: .noStore),
        Case(
            name: "private with a name and a stray one",
            lines: ["Cache-Control: private=Set-Cookie X-User, max-age=60"],
            obstacle: .privateResponse),
        Case(
            name: "private with a list that is broken", lines: ["Cache-Control: private=\"a, b c\", max-age=60"],
            obstacle: .privateResponse),
        Case(
            name: "the whole value in quotes",
            lines: ["Cache-Control: \"private, no-store\"", "@Last-Modified: -9999"],
            obstacle: .noStore),
        Case(
            name: "no-store between quotes that pair wrongly",
            lines: ["Cache-Control: max-age=60, a=\"b, no-store, c=\"d\""], obstacle: .noStore),
        Case(
            name: "no-store in the second line after an open quote",
            lines: ["Cache-Control: max-age=60, a=\"oops", "Cache-Control: no-store, c=\"d\""], obstacle: .noStore),
        Case(
            name: "no-store after a byte that no name has", lines: ["Cache-Control: max-age=60,\u{A0}no-store"],
            obstacle: .noStore),
        Case(
            name: "no-store after an open quote", lines: ["Cache-Control: max-age=60, a=\"b, no-store"],
            obstacle: .noStore),
        Case(
            name: "401 with explicit freshness", status: 401, lines: ["Cache-Control: max-age=1"],
            obstacle: .dependsOnRequest),
        Case(
            name: "cookie without freshness", lines: ["@Last-Modified: -9999", "Set-Cookie: a=b"], obstacle: .setsCookie
        ),
        Case(name: "cookie, public", lines: ["@Last-Modified: -9999", "Set-Cookie: a=b", "Cache-Control: public"]),
    ]

    @Test(arguments: cases) func conditions(_ test: Case) {
        let rules = CacheRules(CachingOptions(mode: test.mode))
        let answer = response(test.status, test.lines)
        let policy = rules.policy(for: answer, requestTime: start, responseTime: start)
        let request = request(test.method, "/resource", test.requestLines)
        #expect(
            rules.storingObstacle(answer, to: request, hasContent: test.hasContent, policy: policy) == test.obstacle)
    }

    @Test func lifetimesComeFromTheFirstSourceThatApplies() {
        let table: [(CacheMode, [String], StoredPolicy.LifetimeSource, Int64)] = [
            (.shared, ["Cache-Control: max-age=2, s-maxage=3", "@Expires: 9"], .sMaxage, 3_000),
            (.private, ["Cache-Control: max-age=2, s-maxage=3", "@Expires: 9"], .maxAge, 2_000),
            (.shared, ["@Date: 0", "@Expires: 9", "@Last-Modified: -999"], .expires, 9_000),
            (.shared, ["@Date: 0", "@Last-Modified: -1000"], .heuristic, 100_000),
            (.shared, ["Cache-Control: s-maxage=x, max-age=9"], .invalid, 0),
            (.shared, ["Cache-Control: public; max-age=30", "@Last-Modified: -99999"], .maxAge, 30_000),
            (.shared, ["Cache-Control: public ;max-age=30", "@Last-Modified: -99999"], .maxAge, 30_000),
            (.shared, ["Cache-Control: public max-age=30", "@Last-Modified: -99999"], .maxAge, 30_000),
            (.shared, ["Cache-Control: public\tmax-age=\"30\"", "@Last-Modified: -99999"], .maxAge, 30_000),
            (.shared, ["Cache-Control: public; max-age 30", "@Last-Modified: -99999"], .invalid, 0),
            (.shared, ["Cache-Control: public; max-age = 30", "@Last-Modified: -99999"], .invalid, 0),
            (.shared, ["Cache-Control: a=\"b; max-age=9\"; max-age=30"], .maxAge, 30_000),
            (.shared, ["Cache-Control: a=\"b; max-age=9"], .maxAge, 9_000),
            (.shared, ["Expires: 0", "@Last-Modified: -1000"], .invalid, 0),
            (.shared, [], .none, 0),
        ]
        for (mode, lines, source, milliseconds) in table {
            let policy = CacheRules(CachingOptions(mode: mode)).policy(
                for: response(200, lines), requestTime: start, responseTime: start)
            #expect(policy.lifetimeSource == source && policy.lifetimeMilliseconds == milliseconds, "\(lines)")
        }
    }

    @Test func ageIsCalculatedAsSection423Says() {
        var options = CachingOptions.gateway
        func age(_ lines: [String], delay: Double = 0, residence: Double = 0) -> Int64 {
            let received = start.after(delay)
            let policy = CacheRules(options).policy(
                for: response(200, lines), requestTime: start, responseTime: received)
            return policy.ageMilliseconds(at: received.after(residence))
        }
        #expect(age([]) == 0)
        #expect(age(["@Date: 0"]) == 0)
        #expect(age(["@Date: -10"]) == 10_000)
        #expect(age(["@Date: 10"]) == 0)
        #expect(age(["Age: 5"], delay: 2, residence: 3) == 10_000)
        #expect(age(["@Date: -60", "Age: 5"], delay: 2, residence: 3) == 65_000)
        #expect(age(["Age: 5"], residence: -9) == 5_000)
        options.trustsAge = true
        #expect(age(["@Date: -60", "Age: 5"], delay: 2, residence: 3) == 10_000)
    }

    @Test func fieldsThatAnUpdateDoesNotChange() throws {
        let lines = ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Encoding: gzip", "X: 1"]
        let head = response(200, lines)
        let update = response(
            304,
            ["ETag: \"a\"", "Content-Encoding: identity", "X: 2", "Content-Length: 9", "Content-Range: bytes 0-8/9"])
        func updated(_ options: CachingOptions) -> HTTPFields {
            let rules = CacheRules(options)
            let stored = StoredResponse(
                head: head, requestTime: start, responseTime: start, body: .complete(length: 4),
                policy: rules.policy(for: head, requestTime: start, responseTime: start))
            return rules.updatedFields(of: stored, from: update, responseTime: start)
        }
        var options = CachingOptions.gateway
        #expect(updated(options)[.contentEncoding] == "identity")
        #expect(!updated(options).contains(.contentLength) && !updated(options).contains(.contentRange))
        options.fieldsKeptOnUpdate = [.contentEncoding]
        #expect(updated(options)[.contentEncoding] == "gzip" && updated(options)[HTTPField.Name("X")!] == "2")
    }

    /// A shared cache that never stores a response with `Set-Cookie` does not serve one from before either.
    @Test func cookiesAreNotShared() {
        let head = response(200, ["Cache-Control: max-age=60, public", "Set-Cookie: a=b"])
        for (mode, isServed) in [(CacheMode.shared, false), (.private, true)] {
            let before = CacheRules(CachingOptions(mode: mode))
            let stored = StoredResponse(
                head: head, requestTime: start, responseTime: start, body: .complete(length: 4),
                policy: before.policy(for: head, requestTime: start, responseTime: start))
            var options = CachingOptions(mode: mode)
            options.setCookie = .neverStore
            let rules = CacheRules(options)
            let decision = rules.reuse(request(), stored: [stored], now: start)
            if case .serve = decision { #expect(isServed) } else { #expect(!isServed) }
            #expect(rules.plainHitAge(request(), policy: stored.policy, selecting: .none, now: start) == nil)
            #expect((rules.storingObstacle(head, to: request(), policy: stored.policy) == nil) == isServed)
        }
    }

    @Test(arguments: [
        (["5, 5"], "5"), (["5", "5"], "5"), (["5"], "5"), (["5", "6"], nil), (["x, x"], nil), ([], nil),
    ]) func aLengthIsKeptOnce(_ lines: [String], _ kept: String?) {
        let answer = response(200, ["Cache-Control: max-age=9"] + lines.map { "Content-Length: \($0)" })
        let fields = CacheRules().storedFields(of: answer, responseTime: start)
        #expect(fields[values: .contentLength] == (kept.map { [$0] } ?? []))
    }

    /// Few or many are left out, and the others keep their order.
    @Test(arguments: [0, 1, 8, 9, 40]) func fieldsOfOneConnectionAreNotStored(_ count: Int) {
        let names = (0..<count).map { "X-\($0)" }
        var lines = ["@Date: 0", "Connection: close, X-None", "Cache-Control: max-age=9"]
        for (index, name) in names.enumerated() { lines += ["\(name): 1", "A: \(index)", "Connection: \(name)"] }
        let answer = response(200, lines + ["Close: 1", "Keep-Alive: timeout=5", "B: 1"])
        let fields = CacheRules().storedFields(of: answer, responseTime: start)
        #expect(
            fields.map { "\($0.name.canonicalName): \($0.value)" }.filter { !$0.hasPrefix("date") }
                == ["cache-control: max-age=9"] + names.indices.map { "a: \($0)" } + ["b: 1"])
    }

    @Test func plainHitsAgreeWithTheWholeDecision() {
        let rules = CacheRules(.gateway)
        let head = response(200, ["Cache-Control: max-age=60", "ETag: \"a\"", "@Date: 0"])
        let policy = rules.policy(for: head, requestTime: start, responseTime: start)
        let stored = StoredResponse(
            head: head, requestTime: start, responseTime: start, body: .complete(length: 4), policy: policy)
        for lines in [
            [], ["User-Agent: x", "Accept: */*"], ["Range: bytes=0-1"], ["If-None-Match: \"a\""],
            ["Cache-Control: no-cache"], ["If-Match: *"],
        ] {
            for seconds in [0.0, 30, 59, 60, 61, 10_000] {
                let request = request("GET", "/resource", lines)
                let fast = rules.plainHitAge(request, policy: policy, selecting: .none, now: start.after(seconds))
                var whole: Int64?
                if case .serve(let served) = rules.reuse(request, stored: [stored], now: start.after(seconds)),
                    served.stale == nil,
                    served.content == .whole
                {
                    whole = served.ageMilliseconds / 1_000
                }
                #expect(fast == whole, "\(lines) after \(seconds) s")
            }
        }
    }

    @Test func aCallerMayStoreRegardlessAndSetTheLifetime() throws {
        let rules = CacheRules(.privateCache)
        let answer = response(200, ["Cache-Control: no-store, no-cache, max-age=0", "Connection: x", "Vary: *"])
        var new = try #require(
            rules.storingRegardless(answer, to: request(), stored: [], requestTime: start, responseTime: start))
        new.policy.override(lifetimeSeconds: 60)
        let stored = try #require(new.finished(receivedBytes: 4, isComplete: true))
        #expect(new.finished(receivedBytes: 4, isComplete: false) == nil)
        guard case .serve(let served) = rules.reuse(request(), stored: [stored], now: start.after(59)) else {
            Issue.record("the caller's lifetime should have counted")
            return
        }
        #expect(served.content == .whole && !served.head.headerFields.contains(.connection))
        guard case .forward = rules.reuse(request(), stored: [stored], now: start.after(61)) else {
            Issue.record("the caller's lifetime is over")
            return
        }
        let refused = [
            ("POST", 200), ("GET", 206), ("GET", 304), ("GET", 103), ("GET", 401), ("GET", 412), ("GET", 416),
            ("GET", 500), ("GET", 503),
        ]
        for (method, status) in refused {
            let other = rules.storingRegardless(
                response(status), to: request(method), stored: [], requestTime: start, responseTime: start)
            #expect(other == nil, "\(method) \(status)")
        }
        let content = rules.storingRegardless(
            answer, to: request(), hasContent: true, stored: [], requestTime: start, responseTime: start)
        let noStore = rules.storingRegardless(
            answer, to: request("GET", "/", ["Cache-Control: no-store"]), stored: [], requestTime: start,
            responseTime: start)
        #expect(content == nil && noStore == nil)
    }

    @Test(arguments: ["Cache-Control: private", "Set-Cookie: sid=A", "Vary: *"])
    func aSharedCacheStoresNoUsersOwnRegardless(_ line: String) {
        let shared = CacheRules(.gateway).storingRegardless(
            response(200, [line]), to: request(), stored: [], requestTime: start, responseTime: start)
        let alone = CacheRules(.privateCache).storingRegardless(
            response(200, [line]), to: request(), stored: [], requestTime: start, responseTime: start)
        #expect(shared == nil && alone != nil)
    }

    @Test func aGivenLifetimeStoresWhatStatesNone() {
        let rules = CacheRules(.privateCache)
        func stores(_ status: Int, _ lines: [String] = [], lifetime: Int64?) -> Bool {
            let decision = rules.received(
                response(status, lines), for: ForwardedRequest(request: request(), reason: .uriMiss), stored: [],
                requestTime: start, responseTime: start, lifetimeSeconds: lifetime)
            return decision.store != nil
        }
        #expect(!stores(200, lifetime: nil) && stores(200, lifetime: 60) && stores(302, lifetime: 60))
        #expect(!stores(200, lifetime: 0) && !stores(503, lifetime: 60) && !stores(401, lifetime: 60))
        #expect(!stores(200, ["Cache-Control: no-store"], lifetime: 60))
    }

    @Test func lifetimesByStatus() {
        var options = CachingOptions.gateway
        options.lifetimesByStatus = [404: 10, 302: 20, 599: 30]
        let rules = CacheRules(options)
        func lifetime(_ status: Int, _ lines: [String] = []) -> Int64? {
            let decision = rules.received(
                response(status, lines), for: ForwardedRequest(request: request(), reason: .uriMiss), stored: [],
                requestTime: start, responseTime: start)
            return decision.store.map { $0.policy.lifetimeMilliseconds / 1_000 }
        }
        #expect(lifetime(404) == 10 && lifetime(302) == 20 && lifetime(599) == nil && lifetime(410) == nil)
        #expect(lifetime(404, ["Cache-Control: max-age=3"]) == 3)
        #expect(lifetime(404, ["Cache-Control: no-cache"]) == nil && lifetime(404, ["Set-Cookie: a=b"]) == nil)
        #expect(CacheRules(.gateway).options.fingerprint != options.fingerprint)
    }

    @Test(
        arguments: [
            ([], "identity"), (["gzip, deflate, br, zstd"], "br, gzip"), (["GZIP;q=1.0, *;q=0"], nil),
            (["deflate"], "identity"), (["*"], "br, gzip"), (["gzip;q=0.5", "br;q=0"], "gzip"), (["identity;q=0"], nil),
            (["gzip;level=9"], nil), ([""], "identity"),
        ] as [([String], String?)])
    func acceptEncodingIsFolded(_ lines: [String], _ folded: String?) {
        let given = fields(lines.map { "Accept-Encoding: " + $0 })
        #expect(CacheRules.foldedAcceptEncoding(given, to: ["br", "gzip"]) == folded)
    }
}
