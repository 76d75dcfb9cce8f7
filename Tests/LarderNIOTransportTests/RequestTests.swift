import HTTPTypes
import LarderHTTP
import LarderNIOTransport
import Locks
import TestSupport
import Testing

struct RequestTests {
    private struct Broken: Error {}

    /// What arrives, up to the end of the head, and as much content as `contentBytes` says.
    private func received(
        _ contentBytes: Int, _ request: @Sendable (ScriptedServer) -> TransportRequest
    ) async throws -> String {
        let log = Log()
        try await ScriptedServer.run { peer in
            let head = try await peer.head()
            let content = try await peer.read(contentBytes)
            log.add(String(String.UnicodeScalarView((Array(head.utf8) + content).map { Unicode.Scalar($0) })))
            try await peer.write("HTTP/1.1 204 x\r\n\r\n")
        } _: { server in
            try await withTransport { transport in _ = try await transport.send(request(server)) }
            log.add(server.authority)
        }
        return log.lines[0].replacing(log.lines[1], with: "AUTHORITY")
    }

    @Test func aHeadIsWritten() async throws {
        let fields: HTTPFields = [
            .accept: "a", .connection: "x", .te: "trailers", .init("X-One")!: "1", .contentLength: "7",
            .init("x-ONE")!: "2",
        ]
        let text = try await received(0) { get($0, "/a?b", fields: fields) }
        #expect(text == "GET /a?b HTTP/1.1\r\nHost: AUTHORITY\r\nAccept: a\r\nX-One: 1\r\nx-ONE: 2\r\n\r\n")
    }

    @Test func aMissingPathIsASlash() async throws {
        let text = try await received(0) { server in
            var request = get(server)
            request.head.path = nil
            return request
        }
        #expect(text == "GET / HTTP/1.1\r\nHost: AUTHORITY\r\n\r\n")
    }

    @Test func contentInMemoryHasItsLength() async throws {
        let text = try await received(5) { get($0, method: .post, body: RequestBody(Array("hello".utf8))) }
        #expect(text == "POST / HTTP/1.1\r\nHost: AUTHORITY\r\nContent-Length: 5\r\n\r\nhello")
        #expect(try await received(0) { get($0, method: .post) }.hasSuffix("Content-Length: 0\r\n\r\n"))
        #expect(
            try await received(0) { get($0, method: .put, body: RequestBody([])) }.hasSuffix(
                "Content-Length: 0\r\n\r\n"))
    }

    private static func pieces(_ length: Int64?, _ pieces: [String?]) -> RequestBody {
        let counter = Counter()
        return RequestBody(length: length) {
            let index = counter.increment() - 1
            guard index < pieces.count else { return nil }
            guard let piece = pieces[index] else { throw Broken() }
            return Array(piece.utf8)
        }
    }

    @Test func contentOfUnknownLengthIsChunked() async throws {
        let text = try await received(25) {
            get($0, method: .put, body: Self.pieces(nil, ["hello", "", "0123456789"]))
        }
        #expect(
            text
                == "PUT / HTTP/1.1\r\nHost: AUTHORITY\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\na\r\n0123456789\r\n"
        )
        #expect(
            try await received(5) { get($0, method: .put, body: Self.pieces(nil, [])) }.hasSuffix("\r\n\r\n0\r\n\r\n"))
    }

    @Test func contentOfKnownLengthIsStreamed() async throws {
        let text = try await received(7) { get($0, method: .put, body: Self.pieces(7, ["hel", "lo", "!!"])) }
        #expect(text == "PUT / HTTP/1.1\r\nHost: AUTHORITY\r\nContent-Length: 7\r\n\r\nhello!!")
    }

    @Test func muchContentArrivesWhole() async throws {
        let sent = Counter()
        let body = RequestBody(length: 5 << 20) {
            let index = sent.increment() - 1
            return index < 20 ? [UInt8](repeating: UInt8(index), count: 256 << 10) : nil
        }
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            var isRight = true
            for index in 0..<20 {
                let expected = [UInt8](repeating: UInt8(index), count: 256 << 10)
                isRight = try await peer.read(expected.count) == expected && isRight
            }
            try await peer.write("HTTP/1.1 200 x\r\nContent-Length: 1\r\n\r\n\(isRight ? "+" : "-")")
        } _: { server in
            try await withTransport { transport in
                try await transport.send(get(server, method: .put, body: body), expecting: "+")
            }
        }
    }

    @Test(
        arguments: [(4, ["hello"]), (6, ["hello"]), (9, ["hello", nil]), (nil, ["hello", nil])] as [(Int64?, [String?])]
    )
    func contentThatFailsEndsTheRequest(length: Int64?, pieces: [String?]) async throws {
        let ended = Latch()
        try await ScriptedServer.run { peer in
            _ = await peer.readToEnd()
            ended.open()
        } _: { server in
            try await withTransport { transport in
                let request = get(server, method: .put, body: Self.pieces(length, pieces))
                let error = await failure { () throws(TransportError) in try await transport.send(request) }
                #expect(error?.code == .requestBodyFailed)
                // No end of the message, but the end of the connection.
                await ended.wait()
            }
        }
    }

    /// The source would give content without end.
    @Test func anEarlyResponseEndsTheContent() async throws {
        let ended = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            _ = try await peer.read(1000)
            try await peer.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
            _ = await peer.readToEnd()
            ended.open()
        } _: { server in
            try await withTransport { transport in
                let body = RequestBody(length: nil) { [UInt8](repeating: 1, count: 1000) }
                let response = try await transport.send(get(server, method: .put, body: body))
                #expect(response.head.status.code == 413)
                #expect(try await response.body.text() == "big")
                await ended.wait()
            }
        }
    }

    /// RFC 9110 section 10.1.1. A server that says nothing gets the content all the same.
    @Test func anExpectationIsPassedOn() async throws {
        let text = try await received(2) {
            get($0, method: .put, fields: [.expect: "100-continue"], body: Self.pieces(2, ["hi"]))
        }
        #expect(text.contains("Expect: 100-continue\r\n") && text.hasSuffix("\r\n\r\nhi"))
    }

    @Test(arguments: [100, 413]) func expectedContentWaitsForTheServer(_ status: Int) async throws {
        let pulled = Atomic(0)
        let pulledBefore = Atomic(0)
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            pulledBefore.store(pulled.load(ordering: .relaxed), ordering: .relaxed)
            if status == 100 {
                try await peer.write("HTTP/1.1 100 Continue\r\n\r\n")
                _ = try await peer.read(2)
                try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            } else {
                try await peer.write("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n")
            }
            _ = await peer.readToEnd()
        } _: { server in
            try await withTransport { transport in
                let body = RequestBody(length: 2) {
                    pulled.wrappingAdd(1, ordering: .relaxed).oldValue == 0 ? Array("hi".utf8) : nil
                }
                let response = try await transport.send(
                    get(server, method: .put, fields: [.expect: "100-continue"], body: body))
                #expect(response.head.status.code == (status == 100 ? 200 : status))
                #expect(pulledBefore.load(ordering: .relaxed) == 0)
                #expect((pulled.load(ordering: .relaxed) > 0) == (status == 100))
            }
        }
    }

    @Test func aHeadThatCannotBeWrittenIsRefused() async throws {
        try await withTransport { transport in
            for head in [
                HTTPRequest(method: .get, scheme: "ftp", authority: "a", path: "/"),
                HTTPRequest(method: .get, scheme: nil, authority: "a", path: "/"),
                HTTPRequest(method: .get, scheme: "http", authority: nil, path: "/"),
                HTTPRequest(method: .get, scheme: "http", authority: "u@a", path: "/"),
                HTTPRequest(method: .get, scheme: "http", authority: "a", path: "/ b"),
                HTTPRequest(method: .connect, scheme: "http", authority: "a:1", path: nil),
            ] {
                let error = await failure { () throws(TransportError) in
                    try await transport.send(TransportRequest(head: head))
                }
                #expect(error?.code == .invalidRequest)
                #expect(error?.mayHaveBeenSeen == false)
            }
        }
    }
}
