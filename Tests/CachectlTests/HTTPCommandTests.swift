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

    @Test func serveAnswersUntilItIsStopped() async throws {
        try await withOrigin { origin, place in
            let log = place.path.appending("addresses").string
            FileManager.default.createFile(atPath: log, contents: nil)
            let server = try CommandRun.start(
                ["serve", "--origin", origin.url, "--listen", "127.0.0.1:0", "--store", place.store, "--json"],
                output: try FileHandle(forWritingTo: URL(fileURLWithPath: log)))
            defer { server.terminate() }
            var address: String?
            while address == nil, server.isRunning {
                let text = FileManager.default.contents(atPath: log) ?? Data()
                address = (try? JSONSerialization.jsonObject(with: text) as? [String: Any])?["address"] as? String
                if address == nil { try await Task.sleep(for: .milliseconds(20)) }
            }
            let url = try #require(address) + "/a"
            // Another store, so that the answers are the gateway's.
            let client = try Workplace()
            for expected in ["fwd=uri-miss", "; hit"] {
                let run = try await client.run("fetch", url, "-i", "--policy", "do-not-read")
                #expect(run.status == 0 && run.text.contains(expected) && run.text.hasSuffix("hello"), "\(run.text)")
            }
            let purge = try await client.run("fetch", url, "-X", "PURGE")
            #expect(purge.text.contains("\"removed\": 1"))
            #expect(origin.requests(for: "/a").count == 1)
            server.interrupt()
            while server.isRunning { try await Task.sleep(for: .milliseconds(10)) }
            #expect(server.terminationStatus == 0)
        }
    }

    @Test func settingsAreChecked() async throws {
        let place = try Workplace()
        for arguments in [
            [], ["--origin", "ftp://x"], ["--origin", "http://x", "--origin", "http://y"],
            ["--origin", "http://x", "--listen", "nowhere"], ["--origin", "http://x", "--forward"],
            ["--origin", "http://x", "--tls-listen", "127.0.0.1:0"], ["--origin", "http://x", "--threads", "0"],
        ] {
            let run = try await CommandRun.cachectl(["serve", "--store", place.store] + arguments)
            #expect(run.status == 64, "\(arguments): \(run.errors)")
        }
        let file = try place.file("settings", Array(#"{"orgin": ["http://x"]}"#.utf8))
        let run = try await CommandRun.cachectl(["serve", "--store", place.store, "--config", file])
        #expect(run.status == 65 && run.errors.contains("orgin"))
    }
}
