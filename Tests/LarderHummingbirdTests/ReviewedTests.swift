import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird
import NIOCore
import TestSupport
import Testing

/// What reviewers of the middleware found.
struct ReviewedTests {
    @Test func ofTwoMiddlewaresTheOuterOneKeeps() async throws {
        let calls = Calls()
        try await ServerSetting.run { router, cache in
            router.add(middleware: ResponseCacheMiddleware(cache))
            router.group("news").add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(30)))
                .get("a") { _, _ in response("\(calls.next())", cacheControl: "max-age=60") }
        } _: { setting in
            for _ in 0..<2 { try await #expect(setting.text(.get, "/news/a") == "1") }
        }
    }

    @Test func whatConnectionNamesStillSelectsTheVariant() async throws {
        try await ServerSetting.serving { request, _ in
            response(
                "for \(request.headers[.cookie] ?? "none")", cacheControl: "max-age=60", [.vary: "Cookie"])
        } _: { setting in
            let named = try await setting.text(.get, "/a", [.cookie: "sid=1", .connection: "cookie"])
            #expect(named == "for sid=1")
            try await #expect(setting.text() == "for none")
        }
    }

    @Test func withAnOriginHandlersSeeItsName() async throws {
        try await ServerSetting.serving { request, _ in
            response("\(request.head.authority ?? "none")", cacheControl: "max-age=60")
        } _: { setting in
            try await #expect(setting.text() == "site.example")
        }
    }

    @Test func theCacheIsSharedWhateverIsConfigured() async throws {
        let calls = Calls()
        try await ServerSetting.run(configure: { $0.caching.mode = .private }) { router, cache in
            router.add(middleware: ResponseCacheMiddleware(cache))
            router.get("a") { _, _ in response("\(calls.next())", cacheControl: "private, max-age=60") }
        } _: { setting in
            try await #expect(setting.text() == "1")
            try await #expect(setting.text() == "2")
        }
    }

    @Test func aThrownNotModifiedValidates() async throws {
        let calls = Calls()
        try await ServerSetting.serving { request, _ in
            if request.headers[.ifNoneMatch] == "\"1\"" {
                throw HTTPError(.notModified, headers: [.eTag: "\"1\"", .cacheControl: "max-age=60"])
            }
            return response("\(calls.next())", cacheControl: "max-age=60", [.eTag: "\"1\""])
        } _: { setting in
            try await #expect(setting.text() == "1")
            setting.clock.advance(by: .seconds(61))
            let answer = try await setting.send()
            #expect(answer.status == .ok && String(buffer: answer.body) == "1" && calls.count == 1)
            // And is as fresh as it said.
            try await #expect(setting.text() == "1")
        }
    }
}
