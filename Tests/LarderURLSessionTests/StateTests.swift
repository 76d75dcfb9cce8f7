import Foundation
import LarderURLSession
import TestOrigin
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Cookies and credentials.
struct StateTests {
    private static func withCookies(_ body: (Bench) async throws -> Void) async throws {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        try await withBench(session: { $0.httpCookieStorage = storage }, body)
    }

    @Test func cookiesAreKeptAndSent() async throws {
        try await Self.withCookies { bench in
            bench.origin.script(
                "/set", .ok("x").header("Set-Cookie", "a=1; Path=/").header("Set-Cookie", "b=2; Path=/"))
            bench.origin.script("/show") { .ok($0["Cookie"] ?? "none") }
            let answer1 = try await bench.load("/show")
            #expect(answer1.text == "none")
            _ = try await bench.load("/set")
            let text = try await bench.load("/show").text
            #expect(
                text.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }.sorted() == ["a=1", "b=2"])
        }
    }

    @Test func cookiesOfARedirectAreSentToItsTarget() async throws {
        try await Self.withCookies { bench in
            bench.origin.script("/login", OriginAnswer.redirect(to: "/home").header("Set-Cookie", "session=7; Path=/"))
            bench.origin.script("/home") { .ok($0["Cookie"] ?? "none") }
            let answer2 = try await bench.load("/login")
            #expect(answer2.text == "session=7")
        }
    }

    @Test func aHitSetsNoCookieAgain() async throws {
        try await Self.withCookies { bench in
            bench.origin.script(
                "/set", .ok("x").header("Set-Cookie", "a=1; Path=/").header("Cache-Control", "max-age=60"))
            _ = try await bench.load("/set")
            let storage = try #require(bench.configuration.httpCookieStorage)
            for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
            #expect(try await bench.load("/set").fields["Set-Cookie"]?.contains("a=1") == true)
            #expect(storage.cookies?.isEmpty == true && bench.count("/set") == 1)
        }
    }

    @Test func cookiesSelectVariants() async throws {
        try await Self.withCookies { bench in
            bench.origin.script("/set", .ok("x").header("Set-Cookie", "a=1; Path=/"))
            bench.origin.script("/a") {
                .ok($0["Cookie"] ?? "none").header("Vary", "Cookie").header("Cache-Control", "max-age=60")
            }
            let answer3 = try await bench.load("/a")
            #expect(answer3.text == "none")
            _ = try await bench.load("/set")
            let answer4 = try await bench.load("/a")
            #expect(answer4.text == "a=1")
        }
    }

    @Test func requestsMayRefuseCookies() async throws {
        try await Self.withCookies { bench in
            bench.origin.script("/set", .ok("x").header("Set-Cookie", "a=1; Path=/"))
            bench.origin.script("/a") { .ok($0["Cookie"] ?? "none") }
            _ = try await bench.load("/set")
            let request = bench.request("/a") {
                $0.httpShouldHandleCookies = false
                $0.setValue("own=1", forHTTPHeaderField: "Cookie")
            }
            #if canImport(FoundationNetworking)
                // Linux' URLSession puts its cookies in whatever the request says.
                let answer5 = try await bench.load(request)
                #expect(answer5.text == "a=1")
            #else
                let answer6 = try await bench.load(request)
                #expect(answer6.text == "own=1")
            #endif
        }
    }

    @Test func storedCredentialsAnswerAChallenge() async throws {
        let credentials = URLCredentialStorage()
        try await withBench(session: { $0.urlCredentialStorage = credentials }) { bench in
            bench.origin.script("/a") {
                .basicAuth($0, user: "me", password: "secret", realm: "the realm", then: .ok("in"))
            }
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: bench.origin.port, protocol: "http", realm: "the realm",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            credentials.setDefaultCredential(
                URLCredential(user: "me", password: "secret", persistence: .forSession), for: space)
            let answer = try await bench.load("/a")
            #expect(answer.status == 200 && answer.text == "in" && bench.count("/a") == 2)
        }
    }

    @Test func aDelegateAnswersAChallenge() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .basicAuth($0, user: "me", password: "secret", then: .ok("in")) }
            let recorder = Recorder(credential: URLCredential(user: "me", password: "secret", persistence: .none))
            let record = try await Recorder.load(bench.configuration, bench.request("/a"), recorder)
            #expect(record.answer?.status == 200 && record.answer?.text == "in")
        }
    }

    @Test(arguments: ["Basic realm=\"x\"", "Bearer", "Basic", "Digest realm=\"x\", nonce=\"y\"", "basic REALM=x"])
    func aChallengeNobodyAnswersIsAnAnswer(challenge: String) async throws {
        try await withBench { bench in
            bench.origin.script("/a", OriginAnswer.status(401, "no").header("WWW-Authenticate", challenge))
            let answer = try await bench.load("/a")
            #expect(answer.status == 401 && answer.text == "no")
            #if canImport(FoundationNetworking)
                #expect(answer.fields["Larder-Www-Authenticate"] == challenge)
            #endif
        }
    }

    @Test(arguments: ["Bearer", "Basic", "Digest realm=\"x\", nonce=\"y\"", "basic REALM=x"])
    func aChallengeThatFoundationDoesNotKnowEndsNoProcess(challenge: String) async throws {
        try await withBench { bench in
            bench.origin.script("/a", OriginAnswer.status(401, "no").header("WWW-Authenticate", challenge))
            let recorder = Recorder(credential: URLCredential(user: "me", password: "secret", persistence: .none))
            let record = try await Recorder.load(bench.configuration, bench.request("/a"), recorder)
            #expect(record.answer?.status == 401 && record.answer?.text == "no")
        }
    }
}
