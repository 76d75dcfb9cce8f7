import HTTPTestSupport
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird
import NIOCore
import TestOrigin
import TestSupport
import Testing

/// What a client gets is the same without the cache, at the first request and from the store.
struct HitAndMissTests {
    /// A response of a handler, made again for each call.
    struct Made: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable () -> Response

        init(_ name: String, _ make: @escaping @Sendable () -> Response) {
            testDescription = name
            self.make = make
        }
    }

    static let made = [
        Made("text") { response("text", cacheControl: "max-age=60", [.contentType: "text/plain", .eTag: "\"1\""]) },
        Made("empty") { response("", cacheControl: "max-age=60") },
        Made("no content") { Response(status: .noContent, headers: [.cacheControl: "max-age=60"]) },
        Made("redirect") {
            Response(status: .movedPermanently, headers: [.cacheControl: "max-age=60", .location: "/b"])
        },
        Made("missing") { response("not here", status: .notFound, cacheControl: "max-age=60") },
        Made("gone") { response("", status: .gone, cacheControl: "max-age=60") },
        Made("of its own") {
            response("x", status: .init(code: 299, reasonPhrase: "Fine"), cacheControl: "max-age=60")
        },
        Made("fields twice") {
            var answer = response("x", cacheControl: "max-age=60")
            answer.headers.append(HTTPField(name: .init("X-Two")!, value: "1"))
            answer.headers.append(HTTPField(name: .init("x-two")!, value: "2, 3"))
            answer.headers.append(HTTPField(name: .init("X-Empty")!, value: ""))
            answer.headers.append(HTTPField(name: .setCookie, value: "a=b"))
            answer.headers.append(HTTPField(name: .setCookie, value: "c=d"))
            return answer
        },
        Made("long") { response(String(repeating: "0123456789", count: 100_000), cacheControl: "max-age=60") },
        Made("streamed with a length") {
            Response(
                status: .ok, headers: [.cacheControl: "max-age=60"],
                body: .init(contentLength: 60_000) { writer in
                    for _ in 0..<6 { try await writer.write(ByteBuffer(repeating: 65, count: 10_000)) }
                    try await writer.finish(nil)
                })
        },
        Made("streamed") {
            Response(
                status: .ok, headers: [.cacheControl: "max-age=60"],
                body: .init { writer in
                    for _ in 0..<6 { try await writer.write(ByteBuffer(repeating: 65, count: 10_000)) }
                    try await writer.finish(nil)
                })
        },
        Made("streamed and empty") {
            Response(
                status: .ok, headers: [.cacheControl: "max-age=60"], body: .init { try await $0.finish(nil) })
        },
        Made("with trailer fields") {
            Response(
                status: .ok, headers: [.cacheControl: "max-age=60", .trailer: "X-Sum"],
                body: .init { writer in
                    try await writer.write(ByteBuffer(string: "content"))
                    try await writer.finish([.init("X-Sum")!: "1"])
                })
        },
    ]

    /// Status, fields and content. Of a content that is stored the length is known. A reason phrase of the handler's
    /// own is not kept.
    private static func text(_ response: RawResponse, isStreamed: Bool) -> String {
        var left: Set<String> = ["age", "cache-status", "date", "trailer"]
        if isStreamed { left.formUnion(["content-length", "transfer-encoding"]) }
        let fields = response.fields.filter { !left.contains($0.name.lowercased()) }
            .map { "\($0.name.lowercased()): \($0.value)" }
        return (["\(response.status)"] + fields.sorted()).joined(separator: "\n") + "\n\n" + response.text
    }

    @Test(arguments: made) func areTheSame(made: Made) async throws {
        let calls = Calls()
        let isStreamed = made.make().body.contentLength == nil
        try await ServerSetting.run { router, cache in
            let handler: @Sendable (Request, BasicRequestContext) async throws -> Response = { _, _ in
                _ = calls.next()
                return made.make()
            }
            // Hummingbird leaves it to the handler to send no content.
            let headHandler: @Sendable (Request, BasicRequestContext) async throws -> Response = { _, _ in
                _ = calls.next()
                return made.make().createHeadResponse()
            }
            router.get("plain", use: handler)
            router.head("plain", use: headHandler)
            let group = router.group("cached").add(middleware: ResponseCacheMiddleware(cache))
            group.get(use: handler)
            group.head(use: headHandler)
        } _: { setting in
            // One connection for all: a response that is not what its head says would spoil the next.
            let client = try await RawClient.connect(to: setting.port)
            var length = 0
            for method in ["GET", "HEAD"] {
                let plain = try await client.exchange("\(method) /plain HTTP/1.1\r\nHost: site.example\r\n\r\n")
                for _ in 0..<3 {
                    let cached = try await client.exchange("\(method) /cached HTTP/1.1\r\nHost: site.example\r\n\r\n")
                    #expect(Self.text(cached, isStreamed: isStreamed) == Self.text(plain, isStreamed: isStreamed))
                    if method == "GET" { length = cached.body.count }
                    if cached.status != 204 {
                        #expect(cached["Content-Length"].map { $0 == "\(length)" } ?? (method == "GET"))
                    }
                    await setting.cache.drain()
                }
            }
            try await client.close()
            #expect(calls.count == 3)
        }
    }

    /// Requests that wait for one and the same get a call each if its response is for one client only.
    @Test func privateResponsesAreNotShared() async throws {
        let calls = Calls()
        let gate = Gate()
        try await ServerSetting.serving { _, _ in
            let number = calls.next()
            try await gate.wait()
            return response("\(number)", cacheControl: "private, max-age=60")
        } _: { setting in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<30 { group.addTask { try await setting.text() } }
                await gate.arrival()
                gate.open()
                var texts: Set<String> = []
                for try await text in group { texts.insert(text) }
                #expect(texts.count == 30)
            }
            #expect(calls.count == 30)
        }
    }

    /// What is for one user is not kept, although the route gives a lifetime.
    @Test(arguments: [HTTPField.Name.authorization, .setCookie])
    func whatIsForOneUser(field: HTTPField.Name) async throws {
        let calls = Calls()
        try await ServerSetting.serving(lifetime: .seconds(60)) { request, _ in
            var answer = response("\(request.headers[.authorization] ?? "") \(calls.next())")
            if field == .setCookie { answer.headers[.setCookie] = "session=\(calls.count)" }
            return answer
        } _: { setting in
            for user in ["ada", "bob"] {
                for _ in 0..<2 {
                    let text = try await setting.text(.get, "/a", field == .authorization ? [field: user] : [:])
                    #expect(text.hasPrefix(field == .authorization ? user : " "))
                }
            }
            #expect(calls.count == 4)
        }
    }

    /// A long chunked content goes to the handler as it comes.
    @Test func aLongUpload() async throws {
        try await ServerSetting.serving { request, _ in
            var count = 0
            for try await piece in request.body { count += piece.readableBytes }
            return response("\(count)")
        } _: { setting in
            let client = try await RawClient.connect(to: setting.port)
            try await client.send("PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            let piece = [UInt8](repeating: 65, count: 1 << 18)
            var most = 0
            for _ in 0..<128 {
                try await client.send(Array("40000\r\n".utf8) + piece + [13, 10])
                most = max(most, setting.cache.cache.heldBytes)
            }
            try await client.send("0\r\n\r\n")
            try await #expect(client.response(to: "PUT").text == "\(128 << 18)")
            #expect(most < 1 << 20)
            try await client.close()
        }
    }
}
