import AsyncHTTPClient
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import TestOrigin
import TestSupport
import Testing

/// The calls that give futures.
struct FutureCallTests {
    @Test func allMethods() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { .ok("\($0.method) \($0.text)") }
            let url = setting.origin.url + "/"
            let client = setting.client
            let calls: [(EventLoopFuture<HTTPClient.Response>, String)] = [
                (client.get(url: url), "GET "), (client.post(url: url, body: .string("a")), "POST a"),
                (client.put(url: url, body: .byteBuffer(ByteBuffer(string: "b"))), "PUT b"),
                (client.patch(url: url, body: .bytes([99])), "PATCH c"), (client.delete(url: url), "DELETE "),
            ]
            for (call, expected) in calls {
                let text = try await call.get().body.map { String(buffer: $0) }
                #expect(text == expected)
            }
        }
    }

    @Test func theSecondRequestIsAnsweredFromTheStore() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/r", OriginAnswer.redirect(to: "/a"))
            setting.origin.script("/a", OriginAnswer.status(200).header("Cache-Control", "max-age=60"))
            for _ in 0..<2 {
                let response = try await setting.client.get(url: setting.origin.url + "/r").get()
                #expect(response.status == .ok && response.body == nil && response.host == "127.0.0.1")
                #expect(response.history.map(\.request.url.path) == ["/r", "/a"])
            }
            #expect(setting.origin.requests.map(\.target) == ["/r", "/a", "/r"])
        }
    }

    /// The next piece is asked for when the last was taken; a redirect asks for all of them again.
    @Test func contentsThatAClosureWrites() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", OriginAnswer.redirect(to: "/to", status: 307))
            setting.origin.script("/to") { .ok("\($0["Content-Length"] ?? "-") \($0.text)") }
            for length in [nil, 6 as Int64?] {
                let body = HTTPClient.Body.stream(contentLength: length) { writer in
                    writer.write(.byteBuffer(ByteBuffer(string: "abc"))).flatMap {
                        writer.write(.byteBuffer(ByteBuffer())).flatMap {
                            writer.write(.byteBuffer(ByteBuffer(string: "def")))
                        }
                    }
                }
                let response = try await setting.client.post(url: setting.origin.url + "/", body: body).get()
                #expect(response.body.map { String(buffer: $0) } == "\(length.map { "\($0)" } ?? "-") abcdef")
            }
        }
    }

    private struct Refused: Error {}

    @Test func failures() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", .silent)
            let url = setting.origin.url + "/"
            await #expect(throws: HTTPClientError.deadlineExceeded) {
                try await setting.client.get(url: url, deadline: .now() + .milliseconds(20)).get()
            }
            await #expect(throws: HTTPClientError.emptyScheme) {
                try await setting.client.get(url: "no-scheme").get()
            }
            let loop = setting.client.eventLoopGroup.any()
            await #expect(throws: Refused.self) {
                try await setting.client.post(
                    url: url, body: .stream(contentLength: 3) { _ in loop.makeFailedFuture(Refused()) }
                ).get()
            }
        }
    }

    @Test func shutdownWithAFuture() async throws {
        try await withStore { store in
            let client = CachingHTTPClient(store: store)
            let future: EventLoopFuture<Void> = client.shutdown()
            try await future.get()
        }
    }
}
