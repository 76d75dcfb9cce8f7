import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import Testing

/// Ways by which a request could decide what others get, over sockets. The rules behind them have their scenarios.
struct LeakTests {
    /// `Connection` takes a field out before the origin sees it: then it must not select what is stored either.
    @Test func connectionNamesNoFieldOfTheKey() async throws {
        let transport = ScriptedTransport { request in
            .text(
                request.head.headerFields[.acceptLanguage] ?? "none",
                [
                    .cacheControl: "max-age=60", .vary: "Accept-Language",
                ])
        }
        try await withGateway(transport: transport) { setting in
            func text(_ fields: String...) async throws -> String {
                let lines = fields.map { $0 + "\r\n" }.joined()
                return try await exchange(setting.port, "GET /a HTTP/1.1\r\nHost: example.org\r\n\(lines)\r\n").text
            }
            try await #expect(text("Accept-Language: fr", "Connection: keep-alive, Accept-Language") == "none")
            try await #expect(text("Accept-Language: fr") == "fr")
            try await #expect(text() == "none")
            #expect(transport.requests.count == 2)
        }
    }

    /// Java's default client sends `Content-Length: 0` with a GET.
    @Test func aGETWithContentOfNoBytesIsAHit() async throws {
        let transport = ScriptedTransport { _ in .text("x", fresh) }
        try await withGateway(transport: transport) { setting in
            for number in 0..<3 {
                let response = try await exchange(setting.port, get("/a", "Content-Length: 0"))
                #expect(response["Cache-Status"]?.contains("hit") == (number > 0))
            }
            #expect(transport.requests.count == 1)
        }
    }

    @Test func aPrefixEndsWithItsHost() async throws {
        let transport = ScriptedTransport { _ in .text("x", fresh) }
        try await withGateway(transport: transport) { setting in
            let hosts = ["a.example", "a.example.org", "a.example:8080", "A.EXAMPLE:80"]
            for host in hosts {
                _ = try await exchange(setting.port, "GET /x HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            }
            let purged = try await exchange(setting.port, get("/", "Purge-Prefix: http://A.example", method: "PURGE"))
            #expect(purged.text == "{\"removed\": 1}\n")
            let inside = try await exchange(
                setting.port, get("/", "Purge-Prefix: http://a.example.org/x", method: "PURGE"))
            #expect(inside.text == "{\"removed\": 1}\n")
        }
    }

    @Test func foldedCodingsShareAVariant() async throws {
        let transport = ScriptedTransport { request in
            .text(
                request.head.headerFields[.acceptEncoding] ?? "none",
                [
                    .cacheControl: "max-age=60", .vary: "Accept-Encoding", .eTag: "\"1\"",
                ])
        }
        try await withGateway(transport: transport) { _ in
        } caching: {
            $0.foldedContentCodings = ["br", "gzip"]
        } _: { setting in
            let spellings = ["gzip, deflate, br, zstd", "br;q=1.0, gzip;q=0.8, *;q=0.1", "*"]
            for spelling in spellings {
                let response = try await exchange(setting.port, get("/a", "Accept-Encoding: \(spelling)"))
                #expect(response.text == "br, gzip")
            }
            #expect(transport.requests.count == 1)
            try await #expect(exchange(setting.port, get("/a")).text == "identity")
            try await #expect(exchange(setting.port, get("/a", "Accept-Encoding: deflate")).text == "identity")
            #expect(transport.requests.count == 2)
        }
    }
}
