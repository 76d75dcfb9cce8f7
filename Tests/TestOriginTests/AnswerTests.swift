import HTTPTestSupport
import TestOrigin
import Testing

/// Answers are on the wire as they were scripted.
struct AnswerTests {
    @Test func plainAnswerIsExactlyWhatWasScripted() async throws {
        try await withOrigin { _ in
            .ok("hello").header("A", "1").header("b", "2").header("A", "3").closing()
        } _: {
            origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            let text = String(decoding: try await client.rest(), as: UTF8.self)
            #expect(
                text == "HTTP/1.1 200 OK\r\nA: 1\r\nb: 2\r\nA: 3\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
            )
        }
    }

    @Test(arguments: [200, 201, 299, 404, 499, 599, 600, 999])
    func anyStatusIsSent(_ status: Int) async throws {
        try await withOrigin { _ in
            .status(status, "x", reason: "My Reason")
        } _: { origin in
            let response = try await exchange(origin.port, get("/"))
            #expect(response.statusLine == "HTTP/1.1 \(status) My Reason")
            #expect(response.text == "x")
        }
    }

    @Test func chunksArePiecesAndTrailersFollow() async throws {
        try await withOrigin { _ in
            .ok("ab").then("cde").chunked(trailers: [.init("T", "1")])
        } _: { origin in
            let response = try await exchange(origin.port, get("/"))
            #expect(response.chunks == [2, 3])
            #expect(response.text == "abcde")
            #expect(response.trailers.map(\.name) == ["T"])
        }
    }

    @Test func contentUntilCloseHasNoLength() async throws {
        try await withOrigin { _ in
            .ok("ab").untilClose()
        } _: { origin in
            let response = try await exchange(origin.port, get("/"))
            #expect(response["Content-Length"] == nil)
            #expect(response["Transfer-Encoding"] == nil)
            #expect(response.text == "ab")
        }
    }

    @Test(arguments: [Int64(0), 1, 65_535, 65_536, 1_000_003])
    func generatedContentIsWhatItSaysAtEveryOffset(_ count: Int64) async throws {
        let content = GeneratedBytes(count: count, seed: 7)
        try await withOrigin { _ in
            .ok(content)
        } _: { origin in
            let response = try await exchange(origin.port, get("/"))
            #expect(response.body.count == Int(count))
            #expect(response.body == content.bytes(in: 0..<count))
        }
        let whole = content.bytes(in: 0..<count)
        for start in [0, 1, count / 2, count - 1] where start >= 0 && start < count {
            #expect(content.bytes(in: start..<count) == Array(whole[Int(start)...]))
        }
        #expect(GeneratedBytes(count: 16, seed: 8).bytes(in: 0..<16) != content.bytes(in: 0..<16))
    }

    @Test func interimAnswersComeFirstAndInOrder() async throws {
        try await withOrigin { _ in
            .ok("done").interim(102).interim(103, [.init("Link", "</a.css>; rel=preload")])
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            try await #expect(client.response().status == 102)
            let hints = try await client.response()
            #expect(hints.status == 103)
            #expect(hints["Link"] == "</a.css>; rel=preload")
            try await #expect(client.response().text == "done")
            try await client.close()
        }
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func contentIsLeftOutWhereThereIsNone(_ method: String, _ status: Int) async throws {
        try await withOrigin { request in
            request.target == "/next" ? .ok("next") : .status(status, "content")
        } _: {
            origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send("\(method) / HTTP/1.1\r\nHost: test\r\n\r\n")
            let response = try await client.response(to: method)
            #expect(response.status == status)
            #expect(response["Content-Length"] == (method == "HEAD" ? "7" : nil))
            try await #expect(client.exchange(get("/next")).text == "next")
            try await client.close()
        }
    }

    @Test func contentIsForcedIntoAHeadAnswer() async throws {
        try await withOrigin { _ in
            .ok("content").forcingContent().closing()
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n")
            try await #expect(String(decoding: client.rest(), as: UTF8.self).hasSuffix("\r\n\r\ncontent"))
        }
    }

    @Test func redirectEchoCounterAndCredentials() async throws {
        try await withOrigin { request in
            switch request.path {
            case "/moved": .redirect(to: "/new", status: 308)
            case "/echo": .echo(request)
            case "/count": .counter(request, prefix: "n")
            default: .basicAuth(request, user: "Aladdin", password: "open sesame", then: .ok("in"))
            }
        } _: { origin in
            let moved = try await exchange(origin.port, get("/moved"))
            #expect(moved.statusLine == "HTTP/1.1 308 Permanent Redirect")
            #expect(moved["Location"] == "/new")
            let text = "POST /echo HTTP/1.1\r\nHost: test\r\nX: y\r\nContent-Length: 3\r\n\r\nabc"
            try await #expect(exchange(origin.port, text).text == text)
            try await #expect(exchange(origin.port, get("/count")).text == "n1")
            try await #expect(exchange(origin.port, get("/count?x")).text == "n2")
            let refused = try await exchange(origin.port, get("/"))
            #expect(refused.status == 401)
            #expect(refused["WWW-Authenticate"] == "Basic realm=\"test\"")
            // The example of RFC 7617 section 2.
            let admitted = try await exchange(
                origin.port, get("/", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
            #expect(admitted.text == "in")
        }
    }
}
