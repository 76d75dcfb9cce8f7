import HTTPTestSupport
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird
import NIOCore
import Locks
import TestOrigin
import TestSupport
import Testing

extension ServerSetting {
    /// Sends bytes on a connection of its own, and reads one response.
    func raw(_ request: String) async throws -> RawResponse {
        let client = try await RawClient.connect(to: port)
        try await client.send(request)
        let response = try await client.response(to: String(request.prefix { $0 != " " }))
        try await client.close()
        return response
    }
}

/// How requests are answered from what is kept.
struct AnsweringTests {
    private static let text = String(repeating: "0123456789", count: 10_000)

    @Test func conditionalRequests() async throws {
        let calls = Calls()
        try await ServerSetting.serving { _, _ in
            _ = calls.next()
            return response(Self.text, cacheControl: "max-age=60", [.eTag: "\"1\""])
        } _: { setting in
            // The handler may judge the conditions of a request that it gets; this one does not.
            try await #expect(setting.code(.get, "/a", [.ifNoneMatch: "\"1\""]) == 200)
            let answer = try await setting.send(.get, "/a", [.ifNoneMatch: "\"1\""])
            #expect(answer.status == .notModified && answer.body.readableBytes == 0)
            #expect(answer.headers[.eTag] == "\"1\"")
            try await #expect(setting.text(.get, "/a", [.ifNoneMatch: "\"2\""]) == Self.text)
            #expect(calls.count == 1)
        }
    }

    @Test func staleResponsesAreValidated() async throws {
        let calls = Calls()
        try await ServerSetting.serving { request, _ in
            _ = calls.next()
            let fields: HTTPFields = [.eTag: "\"1\""]
            return request.headers[.ifNoneMatch] == "\"1\""
                ? Response(status: .notModified, headers: [.eTag: "\"1\"", .cacheControl: "max-age=60"])
                : response(Self.text, cacheControl: "max-age=60, stale-while-revalidate=600", fields)
        } _: { setting in
            try await #expect(setting.text() == Self.text)
            setting.clock.advance(by: .seconds(61))
            // The handler cannot be asked behind the client's back: it is asked first.
            let answer = try await setting.send()
            #expect(answer.status == .ok && String(buffer: answer.body) == Self.text && calls.count == 2)
            try await #expect(setting.text() == Self.text)
            #expect(calls.count == 2)
        }
    }

    @Test func ranges() async throws {
        let calls = Calls()
        try await ServerSetting.serving { _, _ in
            _ = calls.next()
            return response(Self.text, cacheControl: "max-age=60", [.eTag: "\"1\""])
        } _: { setting in
            // The handler does not know ranges; the first request has one all the same.
            for _ in 0..<2 {
                let part = try await setting.send(.get, "/a", [.range: "bytes=10-14"])
                #expect(part.status == .partialContent && String(buffer: part.body) == "01234")
                #expect(part.headers[.contentRange] == "bytes 10-14/100000" && part.headers[.contentLength] == "5")
            }
            let last = try await setting.send(.get, "/a", [.range: "bytes=-3"])
            #expect(String(buffer: last.body) == "789")
            let several = try await setting.send(.get, "/a", [.range: "bytes=0-1,50000-50001"])
            #expect(several.status == .partialContent)
            #expect(several.headers[.contentType]?.hasPrefix("multipart/byteranges") == true)
            try await #expect(setting.code(.get, "/a", [.range: "bytes=100000-"]) == 416)
            try await #expect(setting.code(.get, "/a", [.range: "nonsense"]) == 200)
            #expect(calls.count == 1)
        }
    }

    /// A handler that answers ranges itself does so; its parts are not kept.
    @Test func rangesOfTheHandler() async throws {
        let calls = Calls()
        try await ServerSetting.serving { request, _ in
            _ = calls.next()
            guard request.headers[.range] != nil else { return response("0123456789", cacheControl: "max-age=60") }
            return response(
                "12", status: .partialContent, cacheControl: "max-age=60",
                [.contentRange: "bytes 1-2/10", .eTag: "\"1\""])
        } _: { setting in
            for _ in 0..<2 {
                try await #expect(setting.text(.get, "/a", [.range: "bytes=1-2"]) == "12")
            }
            #expect(calls.count == 2)
            try await #expect(setting.text() == "0123456789")
            try await #expect(setting.text(.get, "/a", [.range: "bytes=1-3"]) == "123")
            #expect(calls.count == 3)
        }
    }

    @Test func headFromGet() async throws {
        let calls = Calls()
        try await ServerSetting.serving { _, _ in
            _ = calls.next()
            return response(Self.text, cacheControl: "max-age=60", [.eTag: "\"1\""])
        } _: { setting in
            _ = try await setting.send()
            let answer = try await setting.raw("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(answer["Content-Length"] == "100000" && answer["ETag"] == "\"1\"" && answer.text.isEmpty)
            #expect(calls.count == 1)
        }
    }

    @Test func manyRequestsShareOneCall() async throws {
        let calls = Calls()
        let gate = Gate()
        try await ServerSetting.serving { _, _ in
            _ = calls.next()
            try await gate.wait()
            return response(Self.text, cacheControl: "max-age=60")
        } _: { setting in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 { group.addTask { try await setting.text() } }
                await gate.arrival()
                gate.open()
                for try await text in group { #expect(text == Self.text) }
            }
            #expect(calls.count == 1)
        }
    }

    @Test func aFailingHandlerIsNotKept() async throws {
        struct Broken: Error {}
        let calls = Calls()
        let seen = Mutex<[String]>([])
        try await ServerSetting.run { router, cache in
            router.add(middleware: Observer { error in seen.withLock { $0.append("\(type(of: error))") } })
            router.add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
            router.get("broken") { _, _ -> Response in
                _ = calls.next()
                throw Broken()
            }
            router.get("missing") { _, _ -> Response in throw HTTPError(.notFound, message: "no such thing") }
            router.get("later") { _, _ -> Response in
                if calls.next() > 3 { throw Broken() }
                return response("good", cacheControl: "max-age=60, stale-if-error=600")
            }
        } _: { setting in
            for _ in 0..<2 { try await #expect(setting.code(.get, "/broken") == 500) }
            #expect(calls.count == 2)
            // The error that the handler threw is what the middleware before the cache sees.
            let missing = try await setting.send(.get, "/missing")
            #expect(missing.status == .notFound && String(buffer: missing.body).contains("no such thing"))
            #expect(seen.withLock { $0 } == ["Broken", "Broken", "HTTPError"])
            try await #expect(setting.text(.get, "/later") == "good")
            setting.clock.advance(by: .seconds(61))
            try await #expect(setting.text(.get, "/later") == "good")
            #expect(calls.count == 4)
        }
    }

    private struct Observer: RouterMiddleware {
        typealias Context = BasicRequestContext
        let onError: @Sendable (any Error) -> Void

        func handle(
            _ request: Request, context: Context, next: (Request, Context) async throws -> Response
        ) async throws -> Response {
            do {
                return try await next(request, context)
            } catch {
                onError(error)
                throw error
            }
        }
    }
}
