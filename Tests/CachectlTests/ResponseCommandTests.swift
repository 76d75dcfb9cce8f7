import Foundation
import TestOrigin
import TestSupport
import Testing

/// What `get`, `export`, `ls` and `rm` make of HTTP responses that vary or are not complete.
struct ResponseCommandTests {
    /// A store with two variants of `/v`, one of `/w`, and the first 10 of 20 bytes of `/cut`.
    private func filled(_ body: (String, Workplace) async throws -> Void) async throws {
        let origin = try await TestOrigin.start()
        for path in ["/v", "/w"] {
            origin.script(path) { request in
                .ok("in \(request["Accept-Language"] ?? "any")").header("Cache-Control", "max-age=600")
                    .header("Vary", "Accept-Language")
            }
        }
        origin.script(
            "/cut",
            .ok("0123456789abcdefghij").header("Cache-Control", "max-age=600").header("ETag", "\"1\"")
                .truncated(after: 10))
        let place = try Workplace()
        for language in ["de", "en"] {
            let run = try await place.run("fetch", origin.url + "/v", "-H", "Accept-Language: \(language)")
            #expect(run.text == "in \(language)", "\(run.errors)")
        }
        #expect(try await place.run("fetch", origin.url + "/w", "-H", "Accept-Language: fr").text == "in fr")
        #expect(try await place.run("fetch", origin.url + "/cut").status != 0)
        try await body(origin.url, place)
        await origin.stop()
        #expect(try await place.run("verify").status == 0)
    }

    @Test func anIncompleteResponseIsRefusedUnlessAskedFor() async throws {
        try await filled { url, place in
            let target = place.path.appending("out").string
            for arguments in [["get", url + "/cut"], ["get", url + "/cut", "--check", "-o", target]] {
                let run = try await CommandRun.cachectl(arguments + ["--store", place.store])
                #expect(run.status == 65 && run.output.isEmpty, "\(run.text)")
                #expect(run.errors.contains("10 of 20 bytes") && run.errors.contains("--partial"), "\(run.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: target))
            #expect(try await place.run("get", url + "/cut", "--partial").text == "0123456789")
            let error = try await place.run("get", url + "/cut", "--json").errors
            #expect(error.contains(#""code":"incomplete""#) && error.contains(#""key":""# + url))
            let line = try await place.run("ls", "--prefix", url + "/cut").text.split(separator: "\n").last
            #expect(line?.contains("----I  " + url + "/cut") == true)
        }
    }

    @Test func getChoosesAVariant() async throws {
        try await filled { url, place in
            #expect(try await place.run("get", url + "/w").text == "in fr")
            let run = try await place.run("get", url + "/v")
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(run.errors.contains("1  5 B  accept-language: de\n"), "\(run.errors)")
            #expect(run.errors.contains("2  5 B  accept-language: en\n"), "\(run.errors)")
            #expect(try await place.run("get", url + "/v", "--variant", "2").text == "in en")
            #expect(try await place.run("get", url + "/v", "--header", "Accept-Language: de").text == "in de")
            #expect(try await place.run("get", url + "/v", "--variant", "3").status == 1)
            #expect(try await place.run("get", url + "/v", "-H", "Accept-Language: it").status == 1)
            let stat = try await place.run("stat", url + "/v").text
            #expect(stat.contains("variant 2") && stat.contains("accept-language: en, 5 B"))
        }
    }

    @Test func exportTellsVariantsApart() async throws {
        try await filled { url, place in
            let out = place.path.appending("out").string
            let run = try await place.run("export", out, "--json")
            #expect(run.status == 1 && run.errors.contains("1 incomplete response"))
            #expect(run.json["files"] as? Int == 3 && run.json["skippedIncomplete"] as? Int == 1)
            let host = "http/" + url.dropFirst("http://".count)
            #expect(
                place.contents(of: "out") == [
                    "\(host)/%v [accept-language: de]": Data("in de".utf8),
                    "\(host)/%v [accept-language: en]": Data("in en".utf8),
                    "\(host)/%w [accept-language: fr]": Data("in fr".utf8),
                ])
            let based = place.path.appending("based").string
            let parts = try await place.run("export", based, "--base-url", url, "--partial", "--json")
            #expect(parts.status == 0 && parts.json["files"] as? Int == 4)
            #expect(place.contents(of: "based")["cut"] == Data("0123456789".utf8))
            #expect(place.contents(of: "based")["%w [accept-language: fr]"] == Data("in fr".utf8))
        }
    }

    @Test func listsOfVariantsAreHiddenAndGoWithThem() async throws {
        try await filled { url, place in
            func keys(_ arguments: String...) async throws -> [String] {
                let run = try await CommandRun.cachectl(["ls", "--json", "--store", place.store] + arguments)
                let list = try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]]
                return list?.compactMap { $0["key"] as? String } ?? []
            }
            #expect(try await keys().count == 4)
            #expect(try await keys("--all").count == 6)
            let text = try await place.run("ls").text
            #expect(text.contains("{accept-language: de}") && !text.contains("{2 variants}"))
            #expect(try await place.run("ls", "--all").text.contains("{2 variants}"))

            #expect(try await place.run("pin", url + "/v").text == "pinned 3 entries\n")
            #expect(try await place.run("ls", "--prefix", url + "/v").text.components(separatedBy: "P----").count == 3)
            #expect(try await place.run("touch", url + "/v", "--lifetime", "1h").status == 0)

            let run = try await place.run("rm", url + "/v")
            #expect(run.status == 0 && run.text == "removed 2 variants\n")
            #expect(try await keys("--all", "--prefix", url + "/v").isEmpty)
            #expect(try await place.run("rm", url + "/v").status == 1)
            #expect(try await place.run("get", url + "/w").text == "in fr")
        }
    }

    /// Responses that stand under keys made of more than the URL, and in several entries.
    @Test func partsSharedResponsesAndQueryBelongToTheirURL() async throws {
        let origin = try await TestOrigin.start()
        let fresh = ("Cache-Control", "max-age=600")
        origin.script("/s") { _ in
            .ok("shared").header(fresh.0, fresh.1).header("No-Vary-Search", "params=(\"utm\")")
        }
        origin.script("/q") { _ in .ok("answer").header(fresh.0, fresh.1) }
        origin.script("/r") { request in
            let first = request["Range"]?.hasPrefix("bytes=0-") == true
            return .status(206, first ? "0123" : "89ab").header(fresh.0, fresh.1).header("ETag", "\"1\"")
                .header("Content-Range", first ? "bytes 0-3/20" : "bytes 8-11/20")
        }
        let place = try Workplace()
        _ = try await place.run("fetch", origin.url + "/s?a=1&utm=2")
        _ = try await place.run(
            "fetch", "-X", "QUERY", "-d", "all", "-H", "Content-Type: text/plain", origin.url + "/q")
        for range in ["8-11", "0-3"] {
            let run = try await place.run("fetch", origin.url + "/r", "-H", "Range: bytes=\(range)")
            #expect(run.status == 0, "\(run.errors)")
        }
        let lines = try await place.run("ls").text
        #expect(!lines.contains("part=") && !lines.contains(" search\n"), "\(lines)")
        let all = try await place.run("ls", "--all").text
        #expect(all.contains("part=") && all.contains(" search\n"), "\(all)")

        #expect(try await place.run("get", origin.url + "/s?a=1&utm=9").text == "shared")
        #expect(try await place.run("stat", origin.url + "/s?utm=9&a=2").status == 1)
        #expect(try await place.run("get", origin.url + "/r").errors.contains("8 of 20 bytes"))
        #expect(lines.split(separator: "\n").contains { $0.hasSuffix("/r") && $0.contains(" 8 B ") }, "\(lines)")
        #expect(try await place.run("stat", origin.url + "/r").text.contains("stored ranges  0-3, 8-11\n"))
        let response = try await place.run("stat", origin.url + "/r", "--json").json["response"] as? [String: Any]
        #expect(response?["storedRanges"] as? [[Int]] == [[0, 3], [8, 11]])
        let check = try await place.run("verify")
        #expect(check.status == 0, "\(check.text)")
        #expect(check.text.hasSuffix("; 1 body in progress checked by length only\n"), "\(check.text)")
        #expect(try await place.run("get", origin.url + "/r", "--partial").text == "012389ab")
        let out = place.path.appending("out").string
        #expect(try await place.run("export", out, "--partial").status == 0)
        let names = try #require(FileManager.default.enumerator(atPath: out)?.allObjects as? [String])
        #expect(!names.contains { $0.contains("part=") || $0.hasSuffix(" search") }, "\(names)")
        let part = try #require(names.first { $0.hasSuffix("/r") })
        #expect(FileManager.default.contents(atPath: out + "/" + part) == Data("012389ab".utf8))

        for url in ["/s?a=1&utm=7", "/q", "/r"] {
            #expect(try await place.run("rm", origin.url + url).status == 0, "\(url)")
        }
        let left = try await place.run("ls", "--all").text
        #expect(!left.contains("/r") && !left.contains("/q") && !left.contains("a=1"), "\(left)")
        #expect(try await place.run("verify").status == 0)
        await origin.stop()
    }
}
