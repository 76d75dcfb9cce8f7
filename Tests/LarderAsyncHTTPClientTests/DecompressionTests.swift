import AsyncHTTPClient
import HTTPTypes
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import TestOrigin
import TestSupport
import Testing

/// Compressed contents are stored as sent and decompressed for the caller, where the client's configuration says so.
struct DecompressionTests {
    private func configuration(_ limit: NIOHTTPDecompression.DecompressionLimit) -> HTTPClient.Configuration {
        HTTPClient.Configuration(decompression: .enabled(limit: limit))
    }

    private func answer(_ content: [UInt8]) -> OriginAnswer {
        OriginAnswer.ok(content).header("Content-Encoding", "gzip").header("Cache-Control", "max-age=60")
            .header("Vary", "Accept-Encoding")
    }

    @Test func storedAsSentAndDecodedForTheCaller() async throws {
        let text = String(repeating: "all work and no play ", count: 20_000)
        try await ClientSetting.run(configuration(.none)) { setting in
            setting.origin.script("/", answer(gzip(Array(text.utf8))))
            for _ in 0..<2 {
                let (response, found) = try await setting.get("/")
                #expect(found == text && response.headers.first(name: "Content-Encoding") == "gzip")
            }
            #expect(setting.origin.requests.map { $0["Accept-Encoding"] } == ["deflate, gzip"])
            var request = try HTTPCache.request(for: setting.origin.url + "/")
            request.headerFields[.acceptEncoding] = "deflate, gzip"
            let stored = try await setting.client.cache.fetch(request, FetchOptions(policy: .doNotLoad))
            #expect(try await stored.body.bytes() == gzip(Array(text.utf8)))
        }
    }

    @Test func withoutTheSettingTheContentStaysAsItIs() async throws {
        let content = gzip(Array("text".utf8))
        try await ClientSetting.run { setting in
            setting.origin.script("/", answer(content))
            let response = try await setting.client.execute(setting.request("/"), timeout: .seconds(600))
            let received = Array(try await response.body.collect(upTo: 1000).readableBytesView)
            #expect(received == content)
            #expect(setting.origin.requests.map { $0["Accept-Encoding"] } == [nil])
        }
    }

    @Test func theLimitsStayInForce() async throws {
        let bomb = gzip([UInt8](repeating: 0, count: 1 << 20))
        for limit in [NIOHTTPDecompression.DecompressionLimit.size(100_000), .ratio(10)] {
            try await ClientSetting.run(configuration(limit)) { setting in
                setting.origin.script("/bomb", answer(bomb))
                setting.origin.script("/small", answer(gzip(Array("small".utf8))))
                let (own, plain) = await setting.errors(setting.request("/bomb"))
                #expect(own == plain && own.contains("limit"))
                try await #expect(setting.text(setting.request("/small")) == "small")
            }
        }
    }

    @Test func brokenDataAreTheErrorsOfTheClient() async throws {
        let content = gzip((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) })
        var broken = content
        for index in 100..<120 { broken[index] = ~broken[index] }
        let cases = ["/cut": Array(content[..<(content.count / 2)]), "/more": content + [1, 2, 3], "/broken": broken]
        try await ClientSetting.run(configuration(.none)) { setting in
            for (path, bytes) in cases {
                setting.origin.script(path, answer(bytes))
                let (own, plain) = await setting.errors(setting.request(path))
                #expect(own == plain && own.contains("Decompression"), "\(path)")
            }
        }
    }

    /// The answer to HEAD names a coding, and has no content.
    @Test func noContent() async throws {
        try await ClientSetting.run(configuration(.ratio(10))) { setting in
            setting.origin.script("/", answer(gzip(Array("text".utf8))))
            var request = setting.request("/")
            request.method = .HEAD
            try await #expect(setting.text(request).isEmpty)
        }
    }
}
