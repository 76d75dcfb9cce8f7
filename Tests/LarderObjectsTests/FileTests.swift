import HTTPTestSupport
import HTTPTypes
import Larder
import LarderObjects
import SeededData
import TestSupport
import Testing

/// Objects under names of the client's choice: ccache, Gradle, sccache, Turborepo, Nx.
struct FileTests {
    @Test func gradle() async throws {
        try await Setting.run({ $0.connections.limits.bodyBytes = 1 << 20 }) { setting in
            let bytes = body(200_000)
            try await #expect(setting.get("/cache/1a2b").status == 404)
            try await #expect(setting.put("/cache/1a2b", bytes) == 201)
            try await #expect(setting.get("/cache/1a2b").bytes == bytes)
            try await #expect(setting.put("/cache/large", body(2 << 20)) == 413)
        }
    }

    /// What sccache asks through OpenDAL: is there a directory, make it, can a file be written and read?
    @Test func sccacheOverWebDAV() async throws {
        try await Setting.run { setting in
            let root = try await setting.send("PROPFIND", "/sccache/", nil, [.depth: "0"])
            #expect(root.status == 207 && root.text.contains("<D:collection/>"))
            try await #expect(setting.send("MKCOL", "/sccache/").status == 201)
            try await #expect(setting.get("/sccache/.sccache_check").status == 404)
            try await #expect(setting.put("/sccache/.sccache_check", Array("Hello, World!".utf8)) == 201)
            try await #expect(setting.get("/sccache/.sccache_check").text == "Hello, World!")
            let file = try await setting.send("PROPFIND", "/sccache/.sccache_check", nil, [.depth: "0"])
            #expect(file.status == 207 && file.text.contains("<D:getcontentlength>13</D:getcontentlength>"))
            #expect(file.text.contains("<D:getlastmodified>") && file.text.contains("GMT"))
            try await #expect(setting.send("PROPFIND", "/sccache/none", nil, [.depth: "0"]).status == 404)
            try await #expect(setting.send("PROPFIND", "/sccache", nil, [.depth: "0"]).text.contains("<D:collection/>"))
            try await #expect(setting.send("DELETE", "/sccache/.sccache_check").status == 204)
            try await #expect(setting.send("DELETE", "/sccache/.sccache_check").status == 404)
        }
    }

    @Test func aDirectoryIsListed() async throws {
        try await Setting.run { setting in
            for name in ["a b", "c&<d", "sub/one", "sub/two"] {
                let path = name.replacing(" ", with: "%20").replacing("&<", with: "%26%3C")
                try await #expect(setting.put("/dir/\(path)", [1, 2]) == 201)
            }
            let text = try await setting.send("PROPFIND", "/dir/", nil, [.depth: "1"]).text
            for name in ["/dir/", "/dir/a%20b", "/dir/c%26%3Cd", "/dir/sub/"] {
                #expect(text.contains("<D:href>\(name)</D:href>"), "\(text)")
            }
            #expect(!text.contains("one"))
        }
    }

    @Test func turborepo() async throws {
        try await Setting.run { setting in
            let (path, tag) = ("/v8/artifacts/12ab34", HTTPField.Name("x-artifact-tag")!)
            let duration = HTTPField.Name("x-artifact-duration")!
            try await #expect(setting.get("/v8/artifacts/status").text.contains("enabled"))
            try await #expect(setting.get(path + "?teamId=t").status == 404)
            let fields: HTTPFields = [tag: "signature", duration: "400", .contentType: "application/octet-stream"]
            try await #expect(setting.put(path + "?teamId=t", body(5_000), fields) == 202)
            let reply = try await setting.get(path + "?teamId=t")
            #expect(reply.bytes == body(5_000) && reply.fields[tag] == "signature" && reply.fields[duration] == "400")
            // Of another team.
            try await #expect(setting.get(path + "?teamId=other").status == 404)
            let query = try await setting.send(
                "POST", "/v8/artifacts?teamId=t", Array("{\"hashes\": [\"12ab34\", \"none\"]}".utf8))
            #expect(query.text == "{\"12ab34\":{\"size\":5000},\"none\":null}")
            try await #expect(setting.send("POST", "/v8/artifacts/events", Array("[]".utf8)).status == 200)
            try await #expect(setting.send("POST", "/v8/artifacts", Array("{".utf8)).status == 400)
        }
    }

    /// RFC 9110 section 13.1: an upload of who has read another state is refused.
    @Test(arguments: [100, 1_000_000]) func preconditionsOfUploads(length: Int) async throws {
        try await Setting.run { setting in
            func put(_ seed: Int, _ field: HTTPField.Name, _ value: String) async throws -> Int {
                try await setting.put("/a", body(length, seed), [field: value])
            }
            try await #expect(put(0, .ifMatch, "*") == 412)
            try await #expect(put(0, .ifNoneMatch, "*") == 201)
            let first = try #require(try await setting.get("/a").fields[.eTag])
            try await #expect(put(1, .ifNoneMatch, "*") == 412)
            try await #expect(put(1, .ifNoneMatch, "\"x\", W/\(first)") == 412)
            try await #expect(put(1, .ifMatch, "\"x\", W/\(first)") == 412)
            try await #expect(setting.get("/a").bytes == body(length, 0))
            try await #expect(put(1, .ifMatch, "\"x\",\(first)") == 201)
            try await #expect(put(2, .ifMatch, first) == 412)
            try await #expect(setting.get("/a").bytes == body(length, 1))
            try await #expect(put(2, .ifNoneMatch, first) == 201)
            try await #expect(put(3, .ifMatch, "*") == 201)
            try await #expect(setting.get("/a").bytes == body(length, 3))
        }
    }

    @Test func nx() async throws {
        try await Setting.run { setting in
            try await #expect(setting.get("/v1/cache/123").status == 404)
            try await #expect(setting.put("/v1/cache/123", [1, 2, 3]) == 200)
            try await #expect(setting.get("/v1/cache/123").bytes == [1, 2, 3])
            try await #expect(setting.put("/v1/cache/123", [4]) == 409)
            try await #expect(setting.get("/v1/cache/123").bytes == [1, 2, 3])
        }
    }

    @Test func aValidatorSavesTheBody() async throws {
        try await Setting.run { setting in
            _ = try await setting.put("/nix/a.narinfo", body(100), [.contentType: "text/x-nix-narinfo"])
            let reply = try await setting.get("/nix/a.narinfo")
            #expect(reply.fields[.contentType] == "text/x-nix-narinfo")
            let again = try await setting.get("/nix/a.narinfo", [.ifNoneMatch: try #require(reply.fields[.eTag])])
            #expect(again.status == 304 && again.bytes.isEmpty)
        }
    }

    @Test(arguments: [
        "/../etc/passwd", "/a/../b", "/a/./b", "/%2e%2e/a", "/a/%2E%2E/b", "/a%2F..%2Fb", "/a/%00", "/a/%0a",
        "/a/%", "/a/%zz", "/a/%ff", "/" + String(repeating: "a", count: 5_000),
    ])
    func pathsThatNameNothing(path: String) async throws {
        try await Setting.run { setting in
            // The transport would refuse some of them.
            let client = try await RawClient.connect(to: setting.port)
            try await client.send(
                "PUT \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
            let text = String(decoding: try await client.rest(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 400"), "\(text)")
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test func whatIsCutOffIsNotStored() async throws {
        try await Setting.run { setting in
            for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
                let client = try await RawClient.connect(to: setting.port)
                try await client.send("PUT /a HTTP/1.1\r\nHost: x\r\n\(head)\r\n\r\n5\r\nabcde\r\n")
                try await client.close()
            }
            try await #expect(setting.put("/b", [1], [.contentRange: "bytes 0-0/2"]) == 400)
            try await #expect(setting.get("/a").status == 404)
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test func preconditions() async throws {
        try await Setting.run { setting in
            let none: HTTPFields = [.ifNoneMatch: "*"]
            try await #expect(setting.put("/notes/a", [1], none) == 201)
            try await #expect(setting.put("/notes/a", [2], none) == 412)
            let tag = try #require(try await setting.get("/notes/a").fields[.eTag])
            for value in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
                try await #expect(setting.get("/notes/a", [.ifNoneMatch: value]).status == 304, "\(value)")
            }
            try await #expect(setting.get("/notes/a", [.ifNoneMatch: "\"x\""]).bytes == [1])
            try await #expect(setting.put("/notes/b", [3], [.contentEncoding: "br"]) == 201)
            try await #expect(setting.get("/notes/b").fields[.contentEncoding] == "br")
        }
    }

    /// RFC 9110 sections 13.1.1 and 13.1.2: whatever a request would do, it does not where its precondition is false.
    @Test func preconditionsOfOtherRequests() async throws {
        try await Setting.run { setting in
            func delete(_ fields: HTTPFields) async throws -> Int {
                try await setting.send("DELETE", "/notes/a", nil, fields).status
            }
            try await #expect(setting.put("/notes/a", Array("0123456789".utf8)) == 201)
            let tag = try #require(try await setting.get("/notes/a").fields[.eTag])
            let other: HTTPFields = [.ifMatch: "\"other\""]
            try await #expect(setting.get("/notes/a", other).status == 412)
            try await #expect(setting.get("/notes/a", [.ifMatch: "\"other\"", .range: "bytes=5-"]).status == 412)
            try await #expect(setting.send("HEAD", "/notes/a", nil, other).status == 412)
            try await #expect(
                setting.get("/notes/a", [.ifMatch: tag, .range: "bytes=5-"]).bytes == Array("56789".utf8))
            // If-Match comes first (section 13.2.2).
            try await #expect(setting.get("/notes/a", [.ifMatch: tag, .ifNoneMatch: "\"x\""]).status == 200)
            try await #expect(delete(other) == 412)
            try await #expect(delete([.ifNoneMatch: "*"]) == 412)
            try await #expect(delete([.ifNoneMatch: tag]) == 412)
            try await #expect(setting.get("/notes/a").status == 200)
            try await #expect(delete([.ifMatch: tag]) == 204)
            try await #expect(delete(other) == 404)
        }
    }

    /// RFC 9110 section 14: parts of files, of blobs and of results.
    @Test func ranges() async throws {
        try await Setting.run { setting in
            let content = body(100_000)
            try await #expect(setting.put("/notes/a", content) == 201)
            let whole = try await setting.get("/notes/a")
            let tag = try #require(whole.fields[.eTag])
            #expect(whole.fields[.acceptRanges] == "bytes")
            for (value, part) in [
                ("bytes=0-9", 0..<10), ("bytes=99990-", 99_990..<100_000), ("bytes=-7", 99_993..<100_000),
                ("bytes=50000-999999", 50_000..<100_000), ("bytes=0-", 0..<100_000),
            ] {
                let reply = try await setting.get("/notes/a", [.range: value])
                #expect(reply.status == 206 && reply.bytes == Array(content[part]), "\(value)")
                #expect(reply.fields[.contentRange] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/100000")
            }
            try await #expect(setting.put("/notes/empty", []) == 201)
            try await #expect(setting.get("/notes/empty", [.range: "bytes=-5"]).status == 200)
            try await #expect(setting.get("/notes/empty", [.range: "bytes=0-"]).status == 416)
            for value in ["bytes=100000-", "bytes=-0"] {
                let reply = try await setting.get("/notes/a", [.range: value])
                #expect(reply.status == 416 && reply.fields[.contentRange] == "bytes */100000", "\(value)")
            }
            // Several ranges, another unit, nonsense, and content that has changed: the whole.
            for fields in [
                [.range: "bytes=0-1,5-6"], [.range: "lines=0-1"], [.range: "bytes=9-1"], [.range: ""],
                [.range: "bytes=0-9", .ifRange: "\"x\""],
            ] as [HTTPFields] {
                let reply = try await setting.get("/notes/a", fields)
                #expect(reply.status == 200 && reply.bytes == content, "\(fields)")
            }
            try await #expect(setting.get("/notes/a", [.range: "bytes=0-9", .ifRange: tag]).status == 206)
            try await #expect(setting.get("/notes/a", [.range: "bytes=0-9", .ifNoneMatch: tag]).status == 304)
            let head = try await setting.send("HEAD", "/notes/a", nil, [.range: "bytes=0-9"])
            #expect(head.status == 200 && head.fields[.contentLength] == "100000")
            let digest = try await setting.putBlob(content).hexadecimal
            try await #expect(setting.get("/cas/\(digest)", [.range: "bytes=10-19"]).bytes == Array(content[10..<20]))
            try await #expect(setting.put("/notes/empty", []) == 201)
            try await #expect(setting.get("/notes/empty", [.range: "bytes=0-"]).status == 416)
        }
    }

    @Test func teamsDoNotLeadToOtherKeys() async throws {
        try await Setting.run { setting in
            for team in ["x/ac", "ac", "cas", "..", "x%2Fac", "a?b"] {
                let path = "/v8/artifacts/0123?teamId=\(team)"
                try await #expect(setting.put(path, [1]) == 400, "\(team)")
            }
            try await #expect(setting.put("/v8/artifacts/0123?teamId=team_x&slug=y", [1]) == 202)
            let hidden = try await setting.send(
                "POST", "/v8/artifacts?teamId=other", Array(#"{"hashes": ["0123?teamId=team_x&", "0123"]}"#.utf8))
            #expect(hidden.status == 200 && !hidden.text.contains("size"))
        }
    }

    @Test func pagesOfABrowser() async throws {
        try await Setting.run { setting in
            let fields: HTTPFields = [.origin: "http://pages.example"]
            try await #expect(setting.put("/notes/a", [1], fields) == 403)
            try await #expect(setting.get("/notes/a").status == 404)
        }
    }

    @Test func turborepoAsksFirst() async throws {
        try await Setting.run({ $0.access = ObjectAccess(anonymous: .read) }) { setting in
            for path in ["/v8/artifacts/0123", "/v8/artifacts/events"] {
                let reply = try await setting.send("OPTIONS", path)
                #expect(reply.status == 204)
                #expect(reply.fields[.accessControlAllowHeaders]?.contains("Authorization") == true)
            }
            let refused = try await setting.send("PUT", "/v8/artifacts/0123", [1])
            #expect(refused.status == 403 && refused.text.hasPrefix("{\"error\":{\"code\":\"forbidden\""))
        }
    }
}

extension HTTPField.Name {
    static let depth = HTTPField.Name("Depth")!
}
