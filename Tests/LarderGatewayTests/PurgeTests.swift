import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import Testing

/// PURGE: who may, and what it removes.
struct PurgeTests {
    let transport = ScriptedTransport { request in
        .text(
            "x",
            [.cacheControl: "max-age=3600", HTTPField.Name("Cache-Tag")!: request.head.path == "/b/1" ? "red" : "blue"])
    }

    private func fill(_ setting: Setting) async throws {
        for path in ["/a/1", "/a/2", "/b/1"] { _ = try await exchange(setting.port, get(path)) }
    }

    private func isStored(_ path: String, _ setting: Setting) async throws -> Bool {
        try await exchange(setting.port, get(path, "Cache-Control: only-if-cached")).status == 200
    }

    @Test func aURLAPrefixAndATagAreRemoved() async throws {
        try await withGateway(transport: transport) { setting in
            try await fill(setting)
            let one = try await exchange(setting.port, get("/a/1", method: "PURGE"))
            #expect(one.status == 200)
            #expect(one.text == "{\"removed\": 1}\n")
            #expect(one["Content-Type"] == "application/json")
            try await #expect(!isStored("/a/1", setting))
            try await #expect(isStored("/a/2", setting))
            try await #expect(exchange(setting.port, get("/a/1", method: "PURGE")).text == "{\"removed\": 0}\n")

            try await fill(setting)
            try await #expect(
                exchange(setting.port, get("/", "Purge-Prefix: /a/", method: "PURGE")).text == "{\"removed\": 2}\n")
            try await #expect(!isStored("/a/2", setting))
            try await #expect(isStored("/b/1", setting))

            try await fill(setting)
            let tagged = get("/", "Purge-Tag: red, green", method: "PURGE")
            try await #expect(exchange(setting.port, tagged).text == "{\"removed\": 1}\n")
            try await #expect(!isStored("/b/1", setting))
            try await #expect(isStored("/a/1", setting))

            try await fill(setting)
            let everything = get("/", "Purge-Prefix: HTTP://Example.org/", method: "PURGE")
            try await #expect(exchange(setting.port, everything).text == "{\"removed\": 3}\n")
            #expect(!transport.requests.contains { $0.method.rawValue == "PURGE" })
            for field in ["Purge-Prefix: x", "Purge-Tag: ,"] {
                try await #expect(exchange(setting.port, get("/", field, method: "PURGE")).status == 400)
            }
        }
    }

    @Test func aPurgedPartAnswersNoRange() async throws {
        let part = ScriptedTransport { _ in
            .bytes(
                Array("234".utf8), status: 206,
                [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: "bytes 2-4/10"])
        }
        try await withGateway(transport: part) { setting in
            func isHit() async throws -> Bool {
                let response = try await exchange(setting.port, get("/a", "Range: bytes=2-4"))
                #expect(response.status == 206 && response.text == "234")
                await setting.cache.drain()
                return response["Cache-Status"]?.contains("hit") == true
            }
            try await #expect(!isHit())
            try await #expect(isHit())
            _ = try await exchange(setting.port, get("/a", method: "PURGE"))
            try await #expect(!isHit())
            #expect(part.requests.count == 2)
        }
    }

    /// A purge that passed over a criterion would remove more than was asked for.
    @Test(
        arguments: [
            ["Purge-Prefix: /", "Purge-Tag: red"], ["Purge-Tag: red", "Purge-Prefix: /"],
            ["Purge-Prefix: /", "Purge-Group: g"], ["Purge-Group: g", "Purge-Tag: red"],
            ["Purge-Prefix: /", "Purge-Prefix: /b"], ["Purge-Group: a", "Purge-Group: b"],
            ["Purge-Prefix: /", "Purge-Tags: red"], ["purge-key: /b"],
        ])
    func severalCriteriaAreRefused(_ fields: [String]) async throws {
        try await withGateway(transport: transport) { setting in
            try await fill(setting)
            let answer = try await exchange(
                setting.port, get("/a/1", fields.joined(separator: "\r\n"), method: "PURGE"))
            #expect(answer.status == 400, "\(answer.text)")
            for path in ["/a/1", "/a/2", "/b/1"] { try await #expect(isStored(path, setting)) }
        }
    }

    @Test func linesOfTagsAreOneList() async throws {
        try await withGateway(transport: transport) { setting in
            try await fill(setting)
            let tagged = get("/", "Purge-Tag: green\r\nPurge-Tag: red", method: "PURGE")
            try await #expect(exchange(setting.port, tagged).text == "{\"removed\": 1}\n")
        }
    }

    @Test func onlyTheTokenOpensWhereLoopbackDoesNot() async throws {
        try await withGateway(transport: transport) {
            $0.purging = PurgePolicy(allowsLoopback: false, token: "s3cret")
        } _: { setting in
            try await fill(setting)
            for field in [
                "X: y", "Authorization: Bearer wrong!", "Authorization: Bearer s3cre", "Authorization: Bearer s3cret2",
                "Authorization: Basic s3cret", "Authorization: Bearer ",
            ] {
                try await #expect(exchange(setting.port, get("/a/1", field, method: "PURGE")).status == 403)
            }
            try await #expect(isStored("/a/1", setting))
            let allowed = get("/a/1", "Authorization: Bearer s3cret", method: "PURGE")
            try await #expect(exchange(setting.port, allowed).status == 200)
            try await #expect(!isStored("/a/1", setting))
        }
        try await withGateway(transport: transport) {
            $0.purging = PurgePolicy(allowsLoopback: false)
        } _: { setting in
            try await #expect(exchange(setting.port, get("/", "Authorization: Bearer ", method: "PURGE")).status == 403)
        }
    }

    @Test func whereItIsNotTheGatewaysItIsForwarded() async throws {
        let transport = ScriptedTransport { request in .text(request.head.method.rawValue) }
        try await withGateway(transport: transport) {
            $0.purging = PurgePolicy(isEnabled: false)
        } _: { setting in
            try await #expect(exchange(setting.port, get("/", method: "PURGE")).text == "PURGE")
        }
    }
}
