import AsyncHTTPClient
import HTTPTypes
import Larder
import LarderAsyncHTTPClient
import LarderHTTP
import TestOrigin
import TestSupport
import Testing

/// The transport on AsyncHTTPClient against real sockets, alone and under a cache.
struct AsyncHTTPClientTransportTests {
    private func withTransport(
        _ body: (TestOrigin, AsyncHTTPClientTransport) async throws -> Void
    ) async throws {
        let origin = try await TestOrigin.start()
        let client = AsyncHTTPClientTransport.makeClient()
        do {
            try await body(origin, AsyncHTTPClientTransport(client))
        } catch {
            try await client.shutdown()
            throw error
        }
        try await client.shutdown()
        await origin.stop()
    }

    private func request(_ origin: TestOrigin, _ path: String, method: HTTPRequest.Method = .get) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: origin.authority, path: path)
    }

    private func text(_ response: TransportResponse) async throws -> String {
        var bytes: [UInt8] = []
        while let piece = try await response.body.next() { bytes += piece }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func requestAndResponseArriveAsSent() async throws {
        try await withTransport { origin, transport in
            origin.script("/a", .status(201, "made").header("X-Two", "1").header("X-Two", "2"))
            var head = request(origin, "/a", method: .put)
            head.headerFields[.accept] = "text/plain"
            let response = try await transport.send(
                TransportRequest(head: head, body: RequestBody(Array("content".utf8))))
            #expect(response.head.status.code == 201)
            #expect(response.head.headerFields[values: HTTPField.Name("X-Two")!] == ["1", "2"])
            #expect(try await text(response) == "made")
            let seen = try #require(origin.requests.first)
            #expect(seen.method == "PUT" && seen.text == "content" && seen["Accept"] == "text/plain")
        }
    }

    @Test func redirectsAndUnusualStatusesAreAnswers() async throws {
        try await withTransport { origin, transport in
            origin.script("/r", .redirect(to: "/elsewhere"))
            origin.script("/599", .status(599, "x"))
            let redirect = try await transport.send(TransportRequest(head: request(origin, "/r")))
            #expect(redirect.head.status.code == 302)
            _ = try await text(redirect)
            let unusual = try await transport.send(TransportRequest(head: request(origin, "/599")))
            #expect(unusual.head.status.code == 599)
            _ = try await text(unusual)
        }
    }

    @Test func aCutOffBodyIsAnError() async throws {
        try await withTransport { origin, transport in
            origin.script("/cut", OriginAnswer.ok("0123456789").truncated(after: 4))
            let response = try await transport.send(TransportRequest(head: request(origin, "/cut")))
            do {
                _ = try await text(response)
                Issue.record("the body was cut off")
            } catch let error as TransportError {
                #expect(error.code == .incompleteResponse && error.mayHaveBeenSeen, "\(error)")
            }
        }
    }

    @Test func nobodyListens() async throws {
        let origin = try await TestOrigin.start()
        let head = request(origin, "/")
        await origin.stop()
        let client = AsyncHTTPClientTransport.makeClient()
        do {
            _ = try await AsyncHTTPClientTransport(client).send(
                TransportRequest(head: head, timeouts: Timeouts(connect: .seconds(2), read: .seconds(2))))
            Issue.record("nothing listens here")
        } catch {
            #expect(!error.mayHaveBeenSeen || error.code == .timedOut, "\(error)")
        }
        try await client.shutdown()
    }

    @Test func underACache() async throws {
        try await withStore { store in
            try await withTransport { origin, transport in
                origin.script("/a", OriginAnswer.ok("body").header("Cache-Control", "max-age=60"))
                let cache = HTTPCache(store: store, transport: transport)
                for source in [FetchResponse.Source.network, .hit] {
                    let response = try await cache.fetch(origin.url + "/a")
                    let bytes = try await response.body.bytes()
                    #expect(response.source == source && bytes == Array("body".utf8))
                }
                #expect(origin.requests.count == 1)
            }
        }
    }
}
