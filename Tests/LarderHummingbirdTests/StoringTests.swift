import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird
import NIOCore
import TestSupport
import Testing

/// What is kept of what handlers answer, and for which requests.
struct StoringTests {
    @Test func theHandlersCacheControlIsHonoured() async throws {
        let calls = Calls()
        try await ServerSetting.serving { _, _ in
            response("\(calls.next())", cacheControl: "max-age=60", [.eTag: "\"1\"", .contentType: "text/plain"])
        } _: { setting in
            for _ in 0..<3 {
                let answer = try await setting.send()
                #expect(answer.status == .ok && String(buffer: answer.body) == "1")
                #expect(answer.headers[.contentType] == "text/plain" && answer.headers[.contentLength] == "1")
                #expect(answer.headers[.cacheControl] == "max-age=60")
            }
            setting.clock.advance(by: .seconds(30))
            let hit = try await setting.send()
            #expect(hit.headers[.age] == "30" && hit.headers[.cacheStatus]?.contains("hit") == true)
            setting.clock.advance(by: .seconds(31))
            try await #expect(setting.text() == "2")
        }
    }

    @Test(arguments: [
        nil, "no-store", "private", "no-cache", "max-age=0", "not a directive", "max-age=x",
    ])
    func notKept(cacheControl: String?) async throws {
        let calls = Calls()
        try await ServerSetting.serving { _, _ in
            response("\(calls.next())", cacheControl: cacheControl)
        } _: { setting in
            for number in 1...3 { try await #expect(setting.text() == "\(number)") }
        }
    }

    @Test func theRoutesLifetimeCountsWhereTheHandlerIsSilent() async throws {
        let calls = Calls()
        try await ServerSetting.serving(lifetime: .seconds(60)) { request, _ in
            let own = request.uri.queryParameters["own"].map(String.init)
            return response("\(calls.next())", cacheControl: own)
        } _: { setting in
            for _ in 0..<2 {
                let answer = try await setting.send()
                #expect(String(buffer: answer.body) == "1" && answer.headers[.cacheControl] == nil)
                // Clients are not told.
                #expect(!answer.headers.contains { $0.name.rawName.lowercased().hasPrefix("larder") })
            }
            setting.clock.advance(by: .seconds(61))
            try await #expect(setting.text() == "2")
            try await #expect(setting.text(.get, "/a?own=no-store") == "3")
            try await #expect(setting.text(.get, "/a?own=no-store") == "4")
        }
    }

    @Test func aLifetimeIsNotForEveryResponse() async throws {
        let calls = Calls()
        try await ServerSetting.serving(lifetime: .seconds(60)) { request, _ in
            var answer = response("\(calls.next())")
            switch request.uri.query {
            case "cookie": answer.headers[.setCookie] = "a=b"
            case "error": answer.status = .internalServerError
            case "missing": answer.status = .notFound
            case "thrown": throw HTTPError(.notFound, message: "\(calls.count)")
            case "failed": throw HTTPError(.internalServerError)
            case "events": answer.headers[.contentType] = "text/event-stream; charset=utf-8"
            case "forged": answer.headers[.init("Larder-Route-Cache-Control")!] = "max-age=60, public"
            default: break
            }
            return answer
        } _: { setting in
            for query in ["cookie", "error", "missing", "thrown", "failed", "events"] {
                let before = calls.count
                for _ in 0..<3 { _ = try await setting.send(.get, "/a?\(query)") }
                #expect(calls.count == before + 3, "\(query)")
            }
            // A request with credentials needs an explicit permission (RFC 9111 section 3.5).
            let before = calls.count
            for _ in 0..<3 { _ = try await setting.send(.get, "/a?forged", [.authorization: "Basic eDp5"]) }
            #expect(calls.count == before + 3)
        }
    }

    @Test func credentialsNeedPermission() async throws {
        let calls = Calls()
        try await ServerSetting.serving { request, _ in
            response(
                "\(calls.next())", cacheControl: request.uri.query == "public" ? "public, max-age=60" : "max-age=60")
        } _: { setting in
            let credentials: HTTPFields = [.authorization: "Basic eDp5"]
            try await #expect(setting.text(.get, "/a", credentials) == "1")
            try await #expect(setting.text(.get, "/a", credentials) == "2")
            try await #expect(setting.text(.get, "/a?public", credentials) == "3")
            try await #expect(setting.text(.get, "/a?public", credentials) == "3")
            try await #expect(setting.text(.get, "/a?public") == "3")
        }
    }

    @Test func variants() async throws {
        let calls = Calls()
        try await ServerSetting.serving { request, _ in
            response(
                "\(request.headers[.acceptLanguage] ?? "") \(calls.next())", cacheControl: "max-age=60",
                [.vary: "Accept-Language"])
        } _: { setting in
            for expected in ["de 1", "en 2", "de 1", "en 2"] {
                let language = String(expected.prefix(2))
                try await #expect(setting.text(.get, "/a", [.acceptLanguage: language]) == expected)
            }
        }
    }

    @Test func keysOfTheRoute() async throws {
        let calls = Calls()
        var key = KeyPolicy()
        key.ignoredParameters = ["utm"]
        key.addedFields = [.init("X-Tenant")!]
        key.custom = { $0.headerFields[.init("X-Beta")!] ?? "" }
        try await ServerSetting.serving(lifetime: .seconds(60), key: key) { _, _ in
            response("\(calls.next())")
        } _: { setting in
            try await #expect(setting.text(.get, "/a?q=1&utm=a") == "1")
            try await #expect(setting.text(.get, "/a?q=1&utm=b") == "1")
            try await #expect(setting.text(.get, "/a?q=2") == "2")
            try await #expect(setting.text(.get, "/a?q=1", [.init("X-Tenant")!: "b"]) == "3")
            try await #expect(setting.text(.get, "/a?q=1", [.init("X-Beta")!: "1"]) == "4")
            try await #expect(setting.text(.get, "/a?q=1") == "1")
            // A purge reaches what the route has added to the key.
            try await #expect(setting.cache.purge("/a?q=1") == 3)
            try await #expect(setting.text(.get, "/a?q=1") == "5")
        }
    }

    @Test func tagsAndPurging() async throws {
        let calls = Calls()
        try await ServerSetting.serving(lifetime: .seconds(60), tags: ["all"]) { request, _ in
            var answer = response("\(calls.next())")
            answer.cacheTags = ["article", "id-\(request.uri.query ?? "")"]
            #expect(answer.cacheTags.first == "article")
            return answer
        } _: { setting in
            func fill() async throws {
                for number in 1...3 { _ = try await setting.send(.get, "/a?\(number)") }
            }
            try await fill()
            #expect(calls.count == 3)
            try await #expect(setting.cache.purge(tag: "id-2") == 1)
            try await fill()
            #expect(calls.count == 4)
            try await #expect(setting.cache.purge(tag: "all") == 3)
            try await fill()
            #expect(calls.count == 7)
            try await #expect(setting.cache.purge("/a?1") == 1)
            try await #expect(setting.cache.purge("http://SITE.example:80/a?2") == 1)
            try await #expect(setting.cache.purge(tag: "none") == 0)
            await #expect(throws: FetchError.self) { try await setting.cache.purge("nonsense") }
            try await fill()
            #expect(calls.count == 9)
        }
    }

    @Test func unsafeMethodsInvalidate() async throws {
        let calls = Calls()
        try await ServerSetting.serving(lifetime: .seconds(60)) { request, context in
            if request.method == .get { return response("\(calls.next())") }
            let content = try await request.body.collect(upTo: 1 << 20)
            if content.readableBytes == 0 { throw HTTPError(.badRequest) }
            return response("\(request.method) \(String(buffer: content))")
        } _: { setting in
            for _ in 0..<2 { try await #expect(setting.text() == "1") }
            // One that fails changes nothing.
            try await #expect(setting.code(.post) == 400)
            try await #expect(setting.text() == "1")
            try await #expect(setting.text(.put, body: "content") == "PUT content")
            try await #expect(setting.text() == "2")
        }
    }

    @Test func aQueryIsKeptUnderItsContent() async throws {
        let calls = Calls()
        let query = HTTPRequest.Method("QUERY")!
        try await ServerSetting.serving { request, _ in
            let content = try await request.body.collect(upTo: 1 << 20)
            return response("\(calls.next()) \(String(buffer: content))", cacheControl: "max-age=60")
        } _: { setting in
            for (content, expected) in [("x", "1 x"), ("y", "2 y"), ("x", "1 x")] {
                try await #expect(
                    setting.text(query, "/a", [.contentType: "text/plain"], body: content) == expected)
            }
        }
    }

    /// A client chooses its `Host`; one origin keeps one response for all of them.
    @Test(arguments: ["http://site.example", nil]) func hosts(origin: String?) async throws {
        let calls = Calls()
        try await ServerSetting.run(origin: origin) { router, cache in
            router.add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
            router.get("a") { _, _ in response("\(calls.next())") }
        } _: { setting in
            let hosts = ["a.example", "b.example", "a.example", "a.example:80"]
            var texts: [String] = []
            for host in hosts { texts.append(try await setting.raw("GET /a HTTP/1.1\r\nHost: \(host)\r\n\r\n").text) }
            #expect(texts == (origin == nil ? ["1", "2", "1", "1"] : ["1", "1", "1", "1"]))
            // What no key can be made of is answered all the same.
            try await #expect(setting.raw("GET /a HTTP/1.1\r\nHost: [\r\n\r\n").text.isEmpty == false)
        }
    }

    @Test func anOriginThatIsNoURL() throws {
        try withStore { store in
            for origin in ["", "site.example", "ftp://site.example"] {
                #expect(throws: FetchError.self) { _ = try ResponseCache(store: store, origin: origin) }
            }
        }
    }
}
