import Foundation
import TestOrigin
import TestSupport
import Testing

/// `fetch`, `serve` and what `stat` says of responses: the real program, real sockets.
struct HTTPCommandTests {
    private func withOrigin(_ body: (TestOrigin, Workplace) async throws -> Void) async throws {
        let origin = try await TestOrigin.start()
        origin.script(
            "/a", .ok("hello").header("Cache-Control", "max-age=600").header("ETag", "\"1\""))
        origin.script("/private", .ok("secret").header("Cache-Control", "no-store"))
        let place = try Workplace()
        try await body(origin, place)
        await origin.stop()
        #expect(try await place.run("verify").status == 0)
    }

    @Test func fetchStoresAndServesOffline() async throws {
        try await withOrigin { origin, place in
            let url = origin.url + "/a"
            let first = try await place.run("fetch", url, "-i")
            #expect(first.status == 0 && first.text.hasPrefix("HTTP/1.1 200 OK\n"), "\(first.errors)")
            #expect(first.text.contains("fwd=uri-miss") && first.text.hasSuffix("\n\nhello"))
            let second = try await place.run("fetch", url, "--offline")
            #expect(second.status == 0 && second.text == "hello")
            let json = try await place.run("fetch", url, "--json").json
            #expect(json["source"] as? String == "hit" && json["status"] as? Int == 200)
            #expect(origin.requests.count == 1)

            let file = place.path.appending("out").string
            #expect(try await place.run("fetch", url, "-o", file).status == 0)
            #expect(FileManager.default.contents(atPath: file) == Data("hello".utf8))

            let stat = try await place.run("stat", url, "--json").json
            let response = try #require(stat["response"] as? [String: Any])
            #expect(response["url"] as? String == url && response["status"] as? Int == 200)
            #expect(response["entityTag"] as? String == "\"1\"")
        }
    }

    @Test func policiesAndErrors() async throws {
        try await withOrigin { origin, place in
            let missing = try await place.run("fetch", origin.url + "/a", "--offline")
            #expect(missing.status == 1 && missing.errors.contains(origin.url + "/a"))
            #expect(try await place.run("fetch", origin.url + "/a", "--policy", "no-such").status == 64)
            #expect(try await place.run("fetch", "not a url").status == 64)
            #expect(try await place.run("fetch", origin.url + "/private").text == "secret")
            #expect(try await place.run("fetch", origin.url + "/private", "--offline").status == 1)
            #expect(try await place.run("fetch", origin.url + "/private", "--disrespect").status == 0)
            #expect(try await place.run("fetch", origin.url + "/private", "--policy", "do-not-load").text == "secret")
            let echo = try await place.run("fetch", origin.url + "/none", "-X", "POST", "-d", "x", "-H", "X-Own: 1")
            #expect(echo.status == 0)
            #expect(origin.requests(for: "/none").first?["X-Own"] == "1")
        }
        let place = try Workplace()
        let gone = try await TestOrigin.start()
        await gone.stop()
        #expect(try await place.run("fetch", gone.url + "/").status == 69)
    }
}
