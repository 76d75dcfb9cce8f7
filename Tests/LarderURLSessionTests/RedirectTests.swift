import Foundation
import Larder
import LarderHTTP
import LarderURLSession
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Redirects: RFC 9110 section 15.4.
struct RedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308]) func areFollowed(status: Int) async throws {
        try await withBench { bench in
            bench.origin.script("/a", .redirect(to: "b?x=%20y#there", status: status))
            bench.origin.script("/b", .ok("there").header("Cache-Control", "max-age=60"))
            let answer = try await bench.load("/a")
            #expect(answer.text == "there" && answer.status == 200)
            #expect(answer.url == URL(string: bench.origin.url + "/b?x=%20y#there"))
            _ = try await bench.load("/a")
            #expect(bench.count("/b") == 1)
        }
    }

    @Test func aStoredRedirectIsFollowedWithoutTheNetwork() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .redirect(to: "/b", status: 301).header("Cache-Control", "max-age=60"))
            bench.origin.script("/b", .ok("there").header("Cache-Control", "max-age=60"))
            for _ in 0..<2 {
                let answer = try await bench.load("/a")
                #expect(answer.text == "there")
            }
            #expect(bench.count("/a") == 1 && bench.count("/b") == 1)
        }
    }

    struct Rewriting: Sendable {
        var status: Int
        var method: String
        var expected: String
    }

    @Test(arguments: [
        Rewriting(status: 301, method: "POST", expected: "GET"),
        Rewriting(status: 302, method: "POST", expected: "GET"),
        Rewriting(status: 303, method: "POST", expected: "GET"), Rewriting(status: 303, method: "PUT", expected: "GET"),
        Rewriting(status: 307, method: "POST", expected: "POST"),
        Rewriting(status: 308, method: "POST", expected: "POST"),
        Rewriting(status: 301, method: "PUT", expected: "PUT"),
        Rewriting(status: 303, method: "HEAD", expected: "HEAD"),
    ])
    func rewriteTheMethod(test: Rewriting) async throws {
        try await withBench { bench in
            bench.origin.script("/a", .redirect(to: "/b", status: test.status))
            bench.origin.script("/b", .ok("x"))
            let request = bench.request("/a") {
                $0.httpMethod = test.method
                if test.method != "HEAD" { $0.httpBody = Data("content".utf8) }
                $0.setValue("text/x", forHTTPHeaderField: "Content-Type")
            }
            _ = try await bench.load(request)
            let second = try #require(bench.origin.requests(for: "/b").first)
            let keeps = test.expected == test.method && test.method != "HEAD"
            #expect(second.method == test.expected && second.text == (keeps ? "content" : ""))
            if !keeps, test.method != "HEAD" { #expect(second["Content-Type"] == nil) }
        }
    }

    @Test func anotherOriginGetsNoSecrets() async throws {
        try await withBench { first in
            try await withBench { second in
                first.origin.script("/a", .redirect(to: second.origin.url + "/b"))
                first.origin.script("/same", .redirect(to: "/b"))
                first.origin.script("/b", .ok("same"))
                second.origin.script("/b", .ok("other"))
                for path in ["/a", "/same"] {
                    let request = first.request(path) {
                        $0.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
                        $0.setValue("s=1", forHTTPHeaderField: "Cookie")
                        $0.setValue("kept", forHTTPHeaderField: "X-Other")
                    }
                    _ = try await first.load(request)
                }
                let other = try #require(second.origin.requests.first)
                #expect(other["Authorization"] == nil && other["Cookie"] == nil && other["X-Other"] == "kept")
                let same = try #require(first.origin.requests(for: "/b").first)
                #expect(same["Authorization"] == "Bearer secret")
            }
        }
    }

    @Test func anotherOriginGetsNoSecretsOfTheConfiguration() async throws {
        try await withBench { first in
            try await withBench { second in
                first.origin.script("/a", .redirect(to: second.origin.url + "/b"))
                second.origin.script("/b", .ok("other"))
                let configuration = URLSessionConfiguration.ephemeral
                configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret", "X-Other": "kept"]
                try await withStore { store in
                    let transport = URLSessionTransport(configuration)
                    let cache = HTTPCache(store: store, transport: transport)
                    configuration.useCache(cache)
                    let session = URLSession(configuration: configuration)
                    _ = try await session.answer(first.request("/a"))
                    session.finishTasksAndInvalidate()
                    await cache.drain()
                    transport.close()
                }
                let asked = try #require(first.origin.requests(for: "/a").first)
                #expect(asked["Authorization"] == "Bearer secret")
                let other = try #require(second.origin.requests.first)
                #expect(other["Authorization"] == nil && other["X-Other"] == "kept")
            }
        }
    }

    @Test func aLoopEnds() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .redirect(to: "/a"))
            #expect(await errorCode { try await bench.load("/a") } == .httpTooManyRedirects)
            #expect(bench.count("/a") == 21)
        }
    }

    @Test func anotherSchemeIsAnError() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .redirect(to: "file:///etc/passwd"))
            #expect(await errorCode { try await bench.load("/a") } == .unsupportedURL)
        }
    }

    @Test func withoutALocationIsAnAnswer() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .status(302, "nowhere"))
            let answer1 = try await bench.load("/a")
            #expect(answer1.status == 302)
        }
    }

    #if canImport(FoundationNetworking)
        @Test func areAnswersIfWanted() async throws {
            try await withBench(URLSessionCachingOptions(followsRedirects: false)) { bench in
                bench.origin.script("/a", .redirect(to: "/b"))
                let answer = try await bench.load("/a")
                #expect(answer.status == 302 && answer.fields["Location"] == "/b")
            }
        }
    #endif
}
