import HTTPTypes
import LarderHTTP
import NIOHPACK
import NIOHTTP2
import Locks
import TestSupport
import Testing

@testable import LarderNIOTransport

/// HTTP/2 to origins (RFC 9113).
struct HTTP2Tests {
    /// With a sanitizer, waiting for a connection takes longer than it usually may.
    func request(
        _ server: HTTP2Server, _ path: String = "/", method: HTTPRequest.Method = .get, fields: HTTPFields = [:],
        body: RequestBody? = nil, timeouts: Timeouts = Timeouts(connect: .seconds(120)),
        onInformational: (@Sendable (HTTPResponse) async -> Void)? = nil
    ) -> TransportRequest {
        TransportRequest(
            head: HTTPRequest(
                method: method, scheme: "https", authority: server.authority, path: path, headerFields: fields),
            body: body, timeouts: timeouts, onInformational: onInformational)
    }

    func with<Result: Sendable>(
        waiting: Int = 1_024, idle: Duration = .seconds(600), headBytes: Int = 64 << 10, connections: Int = 1,
        _ body: (NIOTransport) async throws -> Result
    ) async throws -> Result {
        try await withTransport(
            .init(
                waitingPerHost: waiting, idleTimeout: idle, maximumHeadBytes: headBytes, tls: TestCertificate.client(),
                http2: true, http2ConnectionsPerHost: connections), body)
    }

    static let echo: HTTP2Server.Script = { peer in
        let (head, isEnd) = try await peer.head()
        let content = isEnd ? [] : try await peer.content()
        try await peer.answer("\(head.first(name: ":method") ?? "") \(content.count)")
    }

    // MARK: Messages

    @Test func aRequestAndItsResponse() async throws {
        let log = Log()
        try await HTTP2Server.run { peer in
            let (head, isEnd) = try await peer.head()
            for (name, value, _) in head { log.add("\(name): \(value)") }
            log.add("\(isEnd)")
            try await peer.respond([":status": "200", "x-a": "1", "x-a": "2"])
            try await peer.write(Array("hello".utf8))
            try await peer.respond(["x-trailer": "t"], isEnd: true)
        } _: { server in
            try await with { transport in
                let fields: HTTPFields = [
                    .accept: "*/*", .connection: "close", .proxyAuthorization: "Basic c3RvbGVu", .te: "trailers",
                ]
                let response = try await transport.send(request(server, "/p?q", fields: fields))
                #expect(response.head.headerFields.map { "\($0.name): \($0.value)" } == ["x-a: 1", "x-a: 2"])
                #expect(response.body.length == nil)
                let text = try await response.body.text()
                #expect(text == "hello")
            }
            #expect(
                log.lines == [
                    ":method: GET", ":scheme: https", ":authority: \(server.authority)", ":path: /p?q", "accept: */*",
                    "true",
                ])
        }
    }

    /// A server that begins another response on the stream did not end the first one.
    @Test func aSecondHeadIsNoTrailer() async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            try await peer.respond([":status": "200"])
            try await peer.write(Array("hello".utf8))
            try await peer.respond([":status": "500"], isEnd: true)
        } _: { server in
            try await with { transport in
                let response = try await transport.send(request(server))
                let error = await failure { () throws(TransportError) in
                    while try await response.body.next() != nil {}
                }
                #expect(error?.code == .malformedResponse)
            }
        }
    }

    @Test(arguments: [0, 10, 200_000]) func contentIsSent(count: Int) async throws {
        try await HTTP2Server.run(script: Self.echo) { server in
            try await with { transport in
                let content = [UInt8](repeating: 7, count: count)
                try await transport.send(
                    request(server, method: .put, body: RequestBody(content)), expecting: "PUT \(count)")
                for length in [Int64(count), nil] {
                    let left = Mutex(content)
                    let body = RequestBody(length: length) {
                        left.withLock { left in
                            let piece = Array(left.prefix(50_000))
                            left.removeFirst(piece.count)
                            return piece.isEmpty ? nil : piece
                        }
                    }
                    try await transport.send(request(server, method: .post, body: body), expecting: "POST \(count)")
                }
            }
            #expect(server.connections == 1)
        }
    }

    @Test func contentOfAnotherLengthFails() async throws {
        try await HTTP2Server.run(script: Self.echo) { server in
            try await with { transport in
                let body = RequestBody(length: 5) { nil }
                let error = await failure { () throws(TransportError) in
                    try await transport.send(request(server, method: .put, body: body))
                }
                #expect(error?.code == .requestBodyFailed)
                try await transport.send(request(server), expecting: "GET 0")
            }
            #expect(server.connections == 1)
        }
    }

    @Test func interimResponsesComeInOrder() async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            for link in ["a", "b"] { try await peer.respond([":status": "103", "link": link]) }
            try await peer.answer("x")
        } _: { server in
            try await with { transport in
                let log = Log()
                let request = request(server) { log.add($0.headerFields[.init("link")!] ?? "") }
                try await transport.send(request, expecting: "x")
                #expect(log.lines == ["a", "b"])
            }
        }
    }

    @Test(arguments: [HTTPRequest.Method.head, .get]) func responsesWithoutContent(
        method: HTTPRequest.Method
    ) async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            try await peer.respond([":status": method == .head ? "200" : "304", "content-length": "9"], isEnd: true)
        } _: { server in
            try await with { transport in
                try await transport.send(request(server, method: method), expecting: "")
            }
        }
    }

    /// A final response ends the request too.
    @Test func anAnswerBeforeTheContentIsTheAnswer() async throws {
        try await HTTP2Server.run { peer in
            guard try await peer.head().fields.first(name: ":method") == "POST" else {
                return try await peer.answer("x")
            }
            try await peer.respond([":status": "413", "content-length": "2"])
            try await peer.write(Array("no".utf8), isEnd: true)
            await peer.ended()
        } _: { server in
            try await with { transport in
                let (never, _) = AsyncStream.makeStream(of: Void.self)
                let body = RequestBody(length: nil) {
                    for await _ in never {}
                    throw CancellationError()
                }
                try await transport.send(request(server, method: .post, body: body), expecting: "no")
                try await transport.send(request(server), expecting: "x")
                try await waitWhile { transport.pool.streams(server.endpoint) != 0 }
            }
            #expect(server.connections == 1)
        }
    }

    @Test(
        arguments: [
            ([(":status", "200"), ("content-length", "3")], TransportError.Code.malformedResponse),
            ([(":status", "200"), ("content-length", "9")], .incompleteResponse),
            ([(":status", "200"), ("content-length", "5"), ("content-length", "6")], .malformedResponse),
            ([(":status", "200"), ("content-length", "+5")], .malformedResponse),
            ([(":status", "200"), ("x", "a\r\nb: c")], .malformedResponse),
            ([(":status", "2000")], .malformedResponse), ([(":status", "101")], .malformedResponse),
            ([("x", "y")], .malformedResponse), ([(":status", "200"), (":path", "/")], .malformedResponse),
            ([("x", "y"), (":status", "200")], .malformedResponse),
            ([(":status", "200"), ("X", "y")], .malformedResponse),
            ([(":status", "200"), ("transfer-encoding", "chunked")], .malformedResponse),
        ] as [([(String, String)], TransportError.Code)])
    func malformedResponsesAreErrors(fields: [(String, String)], code: TransportError.Code) async throws {
        try await HTTP2Server.run { peer in
            guard try await peer.head().fields.first(name: ":path") == "/bad" else { return try await peer.answer("x") }
            try await peer.respond(.init(fields))
            try await peer.write(Array("hello".utf8), isEnd: true)
        } _: { server in
            try await with { transport in
                let error = await failure { () throws(TransportError) in
                    let body = try await transport.send(request(server, "/bad")).body
                    while try await body.next() != nil {}
                }
                #expect(error?.code == code, "\(error?.message ?? "")")
                #expect(error?.mayHaveBeenSeen == true)
                // The others on the connection continue.
                try await transport.send(request(server), expecting: "x")
            }
            #expect(server.connections == 1)
        }
    }

    @Test func aHeadThatIsTooLargeIsAnError() async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            try await peer.respond([":status": "200", "x": String(repeating: "x", count: 10_000)], isEnd: true)
        } _: { server in
            try await with(headBytes: 4 << 10) { transport in
                let error = await failure { () throws(TransportError) in try await transport.send(request(server)) }
                #expect(error?.code == .responseTooLarge)
            }
        }
    }

    /// More than `HTTPFields` can have, which would stop the program.
    @Test func aHeadOfTooManyFieldsIsMalformed() throws {
        let reader = HTTP2ResponseReader(NIOTransport.Endpoint(host: "127.0.0.1", port: 443, isTLS: true))
        let fields = [(":status", "200")] + Array(repeating: ("x", ""), count: 65_536)
        #expect(throws: TransportError.self) { try reader.response(HPACKHeaders(fields)) }
        try #expect(reader.response(HPACKHeaders(Array(fields[..<1_000]))).headerFields.count == 999)
    }

    // MARK: Ends

    /// What the server did not process is sent again, whatever it is; GOAWAY, on a new connection.
    @Test(arguments: [false, true]) func aRefusedRequestIsSentAgain(goesAway: Bool) async throws {
        let count = Counter()
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            guard count.increment() == 2 else { return try await peer.answer("\(peer.index)") }
            if goesAway { try await peer.goAway(last: 1) } else { try await peer.reset(.refusedStream) }
        } _: { server in
            try await with { transport in
                try await transport.send(request(server), expecting: "0")
                try await transport.send(
                    request(server, method: .post, body: RequestBody([1])), expecting: goesAway ? "1" : "0")
            }
        }
    }

    /// Some servers say so of requests that they have processed.
    @Test func aGoAwayWithAnErrorDoesNotTellWhatWasNotProcessed() async throws {
        let count = Counter()
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            guard count.increment() == 2 else { return try await peer.answer("x") }
            try await peer.goAway(last: 0, .enhanceYourCalm)
            peer.closeConnection()
        } _: { server in
            try await with { transport in
                try await transport.send(request(server), expecting: "x")
                let error = await failure { () throws(TransportError) in
                    try await transport.send(request(server, method: .post, body: RequestBody([1])))
                }
                #expect(error?.mayHaveBeenSeen == true && count.value == 2)
            }
        }
    }

    @Test func whatIsAlwaysRefusedIsAnErrorThatNobodySaw() async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            try await peer.reset(.refusedStream)
        } _: { server in
            try await with { transport in
                let error = await failure { () throws(TransportError) in try await transport.send(request(server)) }
                #expect(error?.code == .closed)
                #expect(error?.mayHaveBeenSeen == false)
            }
        }
    }

    /// A request that runs when the server says good-bye is answered; the next one has another connection.
    @Test func aServerThatGoesAwayAnswersWhatItHas() async throws {
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            try await peer.goAway(last: 1)
            try await peer.answer("\(peer.index)")
        } _: { server in
            try await with { transport in
                try await transport.send(request(server), expecting: "0")
                try await transport.send(request(server), expecting: "1")
                try await waitWhile { transport.pool.load(server.endpoint).places != 0 }
            }
        }
    }

    @Test(arguments: [false, true]) func aStreamThatIsResetIsAnError(hasHead: Bool) async throws {
        try await HTTP2Server.run { peer in
            guard try await peer.head().fields.first(name: ":path") == "/reset" else {
                return try await peer.answer("x")
            }
            if hasHead {
                try await peer.respond([":status": "200"])
                try await peer.write(Array("hello".utf8))
            }
            try await peer.reset(.internalError)
        } _: { server in
            try await with { transport in
                let error = await failure { () throws(TransportError) in
                    let body = try await transport.send(request(server, "/reset")).body
                    while try await body.next() != nil {}
                }
                #expect(error?.code == (hasHead ? .incompleteResponse : .closed))
                #expect(error?.mayHaveBeenSeen == true)
                // The others continue.
                try await transport.send(request(server), expecting: "x")
            }
            #expect(server.connections == 1)
        }
    }

    /// As for HTTP/1.1: what may be repeated is, once, on a new connection.
    @Test(arguments: [(HTTPRequest.Method.get, true), (.post, false)])
    func aConnectionThatEndsOnTheRequest(method: HTTPRequest.Method, isRepeated: Bool) async throws {
        let count = Counter()
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            guard count.increment() == 2 else { return try await peer.answer("\(peer.index)") }
            peer.closeConnection()
        } _: { server in
            try await with { transport in
                try await transport.send(request(server), expecting: "0")
                if isRepeated {
                    try await transport.send(request(server, method: method), expecting: "1")
                } else {
                    let error = await failure { () throws(TransportError) in
                        try await transport.send(request(server, method: method))
                    }
                    #expect(error?.code == .closed)
                    #expect(error?.lostKeptConnection == true)
                }
            }
        }
    }

    // MARK: Limits

    /// A connection that is silent as a whole gets no further requests.
    @Test(arguments: [false, true]) func aResponseThatDoesNotComeTimesOut(isAlive: Bool) async throws {
        try await HTTP2Server.run { peer in
            let path = try await peer.head().fields.first(name: ":path")
            guard path == "/slow" else { return try await peer.answer("\(peer.index)") }
            if isAlive { try await peer.respond([":status": "103"]) }
            await peer.ended()
        } _: { server in
            try await with { transport in
                try await transport.send(request(server), expecting: "0")
                // Long enough for the sign of life to come in on a busy machine.
                let time = Timeouts(connect: .seconds(120), read: .milliseconds(isAlive ? 2_000 : 50))
                let slow = request(server, "/slow", timeouts: time)
                let error = await failure { () throws(TransportError) in try await transport.send(slow) }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == true)
                try await transport.send(request(server), expecting: isAlive ? "0" : "1")
            }
        }
    }

    @Test func theSchemeIsThatOfTheConnection() async throws {
        try await HTTP2Server.run { peer in
            let fields = try await peer.head().fields
            try await peer.answer("\(fields.first(name: ":scheme") ?? "") \(fields.first(name: ":authority") ?? "")")
        } _: { server in
            try await with { transport in
                var request = TransportRequest(
                    head: HTTPRequest(method: .get, scheme: "http", authority: "a.example", path: "/"))
                request.destination = TransportDestination(scheme: "https", host: "127.0.0.1", port: server.port)
                try await transport.send(request, expecting: "https a.example")
            }
        }
    }

    /// A server whose window is small and that does not read.
    @Test func contentThatIsNotTakenTimesOut() async throws {
        try await HTTP2Server.run(window: 0) { peer in
            _ = try await peer.head()
            await peer.ended()
        } _: { server in
            try await with { transport in
                let body = RequestBody(length: nil) { [UInt8](repeating: 1, count: 64 << 10) }
                let error = await failure { () throws(TransportError) in
                    try await transport.send(
                        request(server, method: .put, body: body, timeouts: Timeouts(write: .milliseconds(50))))
                }
                #expect(error?.code == .timedOut)
                #expect(error?.message.contains("did not take") == true)
            }
        }
    }

    @Test func aRequestThatIsCancelledResetsItsStream() async throws {
        let (reached, ended) = (Latch(), Latch())
        try await HTTP2Server.run { peer in
            guard try await peer.head().fields.first(name: ":path") == "/slow" else {
                return try await peer.answer("x")
            }
            reached.open()
            await peer.ended()
            ended.open()
        } _: { server in
            try await with { transport in
                let task = Task { try await transport.send(request(server, "/slow")) }
                await reached.wait()
                task.cancel()
                let result = await task.result
                #expect(throws: TransportError.self) { try result.get() }
                await ended.wait()
                try await transport.send(request(server), expecting: "x")
                try await waitWhile { transport.pool.streams(server.endpoint) != 0 }
            }
            #expect(server.connections == 1)
        }
    }

    /// A reader that stops holds up its own stream only, and no more than the window waits for it.
    @Test func aServerThatIsFastWaitsForTheReader() async throws {
        let chunk = [UInt8](repeating: 7, count: 64 << 10)
        let written = Counter()
        try await HTTP2Server.run { peer in
            guard try await peer.head().fields.first(name: ":path") == "/big" else { return try await peer.answer("x") }
            try await peer.respond([":status": "200", "content-length": "\(200 * chunk.count)"])
            for index in 0..<200 {
                try await peer.write(chunk, isEnd: index == 199)
                written.add(chunk.count)
            }
        } _: { server in
            try await with { transport in
                let body = try await transport.send(request(server, "/big")).body
                var count = try await body.next()?.count ?? 0
                for _ in 0..<100 { try await transport.send(request(server), expecting: "x") }
                #expect(written.value <= 1 << 20)
                #expect((1...512 << 10).contains(transport.heldBytes), "\(transport.heldBytes)")
                while let piece = try await body.next() { count += piece.count }
                #expect(count == 200 * chunk.count)
                #expect(transport.heldBytes <= 64 << 10)
            }
            #expect(server.connections == 1)
        }
    }
}
