import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import HummingbirdTesting
import Larder
import LarderAsyncHTTPClient
import LarderHTTP
import LarderHummingbird
import NIOCore
import NIOSSL
import TestOrigin
import TestSupport
import Testing

/// A server and clients that speak HTTP/2.
struct HTTP2Tests {
    private static func server() throws -> HTTPServerBuilder {
        let certificate = OriginCertificate.local
        return try .http2Upgrade(
            tlsConfiguration: .makeServerConfiguration(
                certificateChain: NIOSSLCertificate.fromPEMBytes(Array(certificate.certificatePEM.utf8))
                    .map { .certificate($0) },
                privateKey: .privateKey(NIOSSLPrivateKey(bytes: Array(certificate.keyPEM.utf8), format: .pem))))
    }

    private static func clientConfiguration() throws -> HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(OriginCertificate.local.certificatePEM.utf8)))
        return HTTPClient.Configuration(tlsConfiguration: tls)
    }

    private static func serving(
        _ handler: @escaping @Sendable (Request, BasicRequestContext) async throws -> Response,
        _ body: @escaping @Sendable (ServerSetting, HTTPClient) async throws -> Void
    ) async throws {
        let server = try server()
        try await ServerSetting.run(scheme: .https, server: server) { router, cache in
            let group = router.group("cached").add(middleware: ResponseCacheMiddleware(cache))
            for router in [router, group] as [any RouterMethods<BasicRequestContext>] {
                router.get("a", use: handler)
                router.put("a", use: handler)
            }
        } _: { setting in
            let client = HTTPClient(configuration: try Self.clientConfiguration())
            do { try await body(setting, client) } catch {
                try await client.shutdown()
                throw error
            }
            try await client.shutdown()
        }
    }

    /// Many streams of one connection, of which all but one wait for the one call of the handler.
    @Test func theServersRequestsShareOneCall() async throws {
        let (calls, gate) = (Calls(), Gate())
        let content = GeneratedBytes(count: 3 << 20)
        try await Self.serving { request, _ in
            _ = calls.next()
            try await gate.wait()
            // HTTPClient ends the process if an answer over HTTP/2 is complete before the content of its request.
            for try await _ in request.body {}
            return response(Self.text(content), cacheControl: "max-age=60", [.eTag: "\"1\""])
        } _: { setting, client in
            let url = "https://127.0.0.1:\(setting.port)/cached/a"
            let ask: @Sendable (HTTPClientRequest) async throws -> (HTTPClientResponse, String) = { request in
                let response = try await client.execute(request, timeout: .seconds(600))
                #expect(response.version == .http2)
                return (response, String(buffer: try await response.body.collect(upTo: 1 << 25)))
            }
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await ask(HTTPClientRequest(url: url)).1 } }
                await gate.arrival()
                gate.open()
                for try await text in group { #expect(text == Self.text(content)) }
            }
            #expect(calls.count == 1)
            var part = HTTPClientRequest(url: url)
            part.headers.add(name: "Range", value: "bytes=0-3")
            let (response, text) = try await ask(part)
            #expect(response.status == .partialContent && text == Self.text(content).prefix(4))
            var known = HTTPClientRequest(url: url)
            known.headers.add(name: "If-None-Match", value: "\"1\"")
            try await #expect(ask(known).0.status == .notModified)
            var put = HTTPClientRequest(url: url)
            put.method = .PUT
            put.body = .stream(
                AsyncStream { continuation in
                    for _ in 0..<10 { continuation.yield(ByteBuffer(repeating: 65, count: 100_000)) }
                    continuation.finish()
                }, length: .unknown)
            _ = try await ask(put)
            _ = try await ask(HTTPClientRequest(url: url))
            #expect(calls.count == 3)
        }
    }

    /// A stream that is reset while its response is written ends the writing, and no other stream.
    @Test func aStreamThatIsReset() async throws {
        let left = Latch()
        try await Self.serving { _, _ in
            Response(
                status: .ok, headers: [.cacheControl: "no-store"],
                body: .init { writer in
                    do {
                        while true { try await writer.write(ByteBuffer(repeating: 0, count: 65_536)) }
                    } catch {
                        left.open()
                        throw error
                    }
                })
        } _: { setting, client in
            let url = "https://127.0.0.1:\(setting.port)/cached/a"
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(600))
            for try await piece in response.body where piece.readableBytes > 0 { break }
            await left.wait()
            var head = HTTPClientRequest(url: "https://127.0.0.1:\(setting.port)/none")
            head.method = .HEAD
            try await #expect(client.execute(head, timeout: .seconds(600)).status == .notFound)
        }
    }

    /// The client that caches asks over HTTP/2 what it has not stored.
    @Test func theClientThatCaches() async throws {
        let calls = Calls()
        try await Self.serving { request, _ in
            let number = calls.next()
            var content = ""
            for try await piece in request.body { content += String(buffer: piece) }
            return response("\(request.method) \(content) \(number)", cacheControl: "max-age=60")
        } _: { setting, plain in
            let url = "https://127.0.0.1:\(setting.port)/a"
            let direct = try await plain.execute(HTTPClientRequest(url: url), timeout: .seconds(600))
            #expect(direct.version == .http2)
            try await withStore { store in
                let client = CachingHTTPClient(store: store, configuration: try Self.clientConfiguration())
                let text: (HTTPClientRequest) async throws -> String = {
                    String(buffer: try await client.execute($0, timeout: .seconds(600)).body.collect(upTo: 1 << 20))
                }
                for _ in 0..<2 { try await #expect(text(HTTPClientRequest(url: url)) == "GET  2") }
                var put = HTTPClientRequest(url: url)
                put.method = .PUT
                put.body = .bytes(ByteBuffer(string: "content"))
                try await #expect(text(put) == "PUT content 3")
                try await #expect(text(HTTPClientRequest(url: url)) == "GET  4")
                try await client.shutdown()
            }
        }
    }

    private static func text(_ content: GeneratedBytes) -> String {
        String(decoding: content.bytes(in: 0..<content.count).map { 32 + $0 % 64 }, as: UTF8.self)
    }
}
