import AsyncHTTPClient
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import TestOrigin
import TestSupport
import Testing

/// Redirects are followed above the cache, by the rules that the client has.
struct RedirectTests {
    @Test func eachAnswerOnTheWayIsKept() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script(
                "/a", OriginAnswer.redirect(to: "b", status: 301).header("Cache-Control", "max-age=60"))
            setting.origin.script("/b", OriginAnswer.redirect(to: "/c?d").header("Cache-Control", "no-store"))
            setting.origin.script("/c", OriginAnswer.ok("arrived").header("Cache-Control", "max-age=60"))
            for _ in 0..<2 {
                let (response, text) = try await setting.get("/a")
                #expect(text == "arrived" && response.url?.absoluteString == setting.origin.url + "/c?d")
                #expect(response.history.map(\.responseHead.status.code) == [301, 302, 200])
            }
            #expect(setting.origin.requests.map(\.target) == ["/a", "/b", "/c?d", "/b"])
        }
    }

    /// The place is in the head.
    @Test func aRedirectWhoseContentStallsIsFollowed() async throws {
        try await ClientSetting.run { setting in
            let gate = Gate()
            let stalling = OriginAnswer.redirect(to: "/b").declaringLength(8).content(Array("1234".utf8)).then(gate)
            setting.origin.script("/a", stalling.then("5678"))
            setting.origin.script("/b", OriginAnswer.ok("arrived"))
            try await #expect(setting.get("/a").1 == "arrived")
            gate.open()
        }
    }

    @Test func tooManyAndCyclesAreErrors() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/cycle", OriginAnswer.redirect(to: "/cycle"))
            let (own, plain) = await setting.errors(setting.request("/cycle"))
            #expect(own == plain && own.contains("redirectCycleDetected"))
            for number in 0..<8 { setting.origin.script("/\(number)", OriginAnswer.redirect(to: "/\(number + 1)")) }
            let (limit, plainLimit) = await setting.errors(setting.request("/0"))
            #expect(limit == plainLimit && limit.contains("redirectLimitReached"))
            #expect(setting.origin.requests(for: "/5").count == 2 && setting.origin.requests(for: "/6").isEmpty)
        }
    }

    @Test func theyAreNotFollowedUnlessWanted() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        try await ClientSetting.run(configuration) { setting in
            setting.origin.script("/", OriginAnswer.redirect(to: "/elsewhere"))
            try await #expect(setting.status(setting.request("/")) == .found)
            #expect(setting.origin.requests.count == 1)
        }
    }

    /// Answers that name no place to go, or one that may not be asked, are answers.
    @Test(arguments: ["", "ftp://example.org/", "file:///etc/passwd", "http+unix://%2Ftmp%2Fs/x"])
    func placesThatAreNotAsked(location: String) async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", OriginAnswer.status(307).header("Location", location))
            let plain = try await setting.plain.execute(setting.request("/"), timeout: .seconds(600)).status
            guard !location.isEmpty else { return }
            try await #expect(setting.status(setting.request("/")) == plain)
        }
    }

    @Test func credentialsStayWithTheirOrigin() async throws {
        let other = try await TestOrigin.start { .echo($0) }
        let fields = [("Authorization", "Bearer a"), ("Cookie", "b"), ("Origin", "c"), ("X-Other", "d")]
        try await ClientSetting.run { setting in
            setting.origin.script("/away", OriginAnswer.redirect(to: other.url + "/"))
            setting.origin.script("/here", OriginAnswer.redirect(to: "/there"))
            setting.origin.script("/there") { .echo($0) }
            for (path, remains) in [("/away", false), ("/here", true)] {
                var request = setting.request(path)
                for (name, value) in fields { request.headers.add(name: name, value: value) }
                let text = try await setting.text(request)
                #expect(text.contains("X-Other: d"))
                for (name, value) in fields.dropLast() { #expect(text.contains("\(name): \(value)") == remains) }
            }
        }
        await other.stop()
    }

    @Test(arguments: [(301, "GET "), (302, "GET "), (303, "GET "), (307, "POST content"), (308, "POST content")])
    func methodAndContent(status: Int, expected: String) async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", OriginAnswer.redirect(to: "/to", status: status))
            setting.origin.script("/to") { .ok("\($0.method) \($0.text)") }
            var request = setting.request("/", ("Content-Type", "text/plain"))
            request.method = .POST
            request.body = .bytes(ByteBuffer(string: "content"))
            try await #expect(setting.text(request) == expected)
            let plain = try await setting.plain.execute(request, timeout: .seconds(600))
            let text = String(buffer: try await plain.body.collect(upTo: 100))
            #expect(text == expected)
        }
    }

    /// What was read once cannot be sent again: the redirect is the answer.
    @Test func aStreamIsNotSentTwice() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", OriginAnswer.redirect(to: "/to", status: 307))
            var request = setting.request("/")
            request.method = .POST
            request.body = .stream([ByteBuffer(string: "content")].async, length: .unknown)
            try await #expect(setting.status(request) == .temporaryRedirect)
            #expect(setting.origin.requests.map(\.target) == ["/"])
        }
    }
}
