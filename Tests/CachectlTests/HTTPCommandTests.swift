import Foundation
import TestOrigin
import TestSupport
import Testing

/// `fetch`, `serve` and what `stat` says of responses: the real program, real sockets.
struct HTTPCommandTests {
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
            for field in ["Host: other", "content-length: 5", "Connection: close", "TE: x", "A: b\nC: d", "no colon"] {
                #expect(try await place.run("fetch", origin.url + "/a", "-H", field).status == 64, "\(field)")
            }
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

    @Test func dataMeansPostAndHeadMeansHead() async throws {
        try await withOrigin { origin, place in
            origin.script("/form") { .ok($0.text) }
            let post = try await place.run("fetch", origin.url + "/form", "-d", "x=1", "--timeout", "2m")
            #expect(post.text == "x=1" && origin.requests(for: "/form").first?.method == "POST")
            let put = try await place.run("fetch", origin.url + "/form", "-d", "y", "-X", "PUT")
            #expect(put.text == "y" && origin.requests(for: "/form").last?.method == "PUT")
            let head = try await place.run("fetch", origin.url + "/a", "-I")
            #expect(head.text.hasPrefix("HTTP/1.1 200 OK\n") && head.text.contains("ETag: \"1\"\n"))
            #expect(!head.text.contains("hello") && origin.requests(for: "/a").last?.method == "HEAD")
            #expect(try await place.run("fetch", origin.url + "/a", "-I", "-d", "x").status == 64)
        }
    }

    @Test func credentialsOfAURLAreSentAndNotStored() async throws {
        try await withOrigin { origin, place in
            let url = origin.url.replacingOccurrences(of: "://", with: "://me:p%40ss@")
            let run = try await place.run("fetch", url + "/a", "-v")
            #expect(run.text == "hello", "\(run.errors)")
            let expected = "Basic " + Data("me:p@ss".utf8).base64EncodedString()
            #expect(origin.requests(for: "/a").first?["Authorization"] == expected)
            #expect(run.errors.contains("> Authorization: ...\n") && run.errors.contains("< HTTP/1.1 200 OK\n"))
            #expect(try await place.run("stat", origin.url + "/a").status == 0)
            let stored = place.contents(of: "store").values
            for secret in ["p%40ss", "p@ss", expected] {
                #expect(!stored.contains { $0.range(of: Data(secret.utf8)) != nil })
            }
        }
    }

    @Test func redirectsAreFollowedWhereAskedFor() async throws {
        try await withOrigin { origin, place in
            let other = try await TestOrigin.start()
            other.script("/end") { .ok($0["Authorization"] ?? "nothing") }
            origin.script("/r", .redirect(to: "a", status: 301))
            origin.script("/post", .redirect(to: "/method", status: 303))
            origin.script("/method") { .ok($0.method) }
            origin.script("/away", .redirect(to: other.url + "/end"))
            origin.script("/loop", .redirect(to: "/loop"))
            let plain = try await place.run("fetch", origin.url + "/r", "-i")
            #expect(plain.status == 0 && plain.text.hasPrefix("HTTP/1.1 301"))
            #expect(try await place.run("fetch", "-L", origin.url + "/r").text == "hello")
            #expect(try await place.run("fetch", "-L", origin.url + "/post", "-d", "x").text == "GET")
            #expect(
                try await place.run("fetch", "-L", origin.url + "/away", "-H", "Authorization: secret").text
                    == "nothing")
            // RFC 3986 section 3.1: the scheme is written in any case.
            origin.script("/upper", .redirect(to: "HTTP" + origin.url.dropFirst(4) + "/a"))
            #expect(try await place.run("fetch", "-L", origin.url + "/upper").text == "hello")
            let loop = try await place.run("fetch", "-L", origin.url + "/loop")
            #expect(loop.status == 69 && loop.errors.contains("more than 10 times"))
            await other.stop()
        }
    }

    @Test func theStatusAndTheNameOfTheFileCanCount() async throws {
        try await withOrigin { origin, place in
            origin.script("/gone", .status(410, "no more"))
            #expect(try await place.run("fetch", origin.url + "/gone").text == "no more")
            let failed = try await place.run("fetch", "-f", origin.url + "/gone")
            #expect(failed.status == 1 && failed.output.isEmpty && failed.errors.contains("410 Gone"))
            #expect(try await place.run("fetch", origin.url + "/a", "-o", "-").text == "hello")
            #expect(!FileManager.default.fileExists(atPath: "-"))
            #expect(try await place.run("fetch", "-O", origin.url + "/").status == 64)
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/sh")
            shell.currentDirectoryURL = URL(fileURLWithPath: place.path.string)
            shell.arguments = ["-c", "\"$0\" fetch -O \"$1\" --store store", CommandRun.path, origin.url + "/a?q=1"]
            try shell.run()
            await shell.exit()
            #expect(FileManager.default.contents(atPath: place.path.appending("a").string) == Data("hello".utf8))
        }
    }
}
