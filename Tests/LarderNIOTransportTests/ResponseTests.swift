import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore
import TestSupport
import Testing

@testable import LarderNIOTransport

struct ResponseTests {
    /// Serves one request with these bytes, then closes.
    private func answer(
        _ bytes: String, method: HTTPRequest.Method = .get,
        _ body: @Sendable (Result<TransportResponse, TransportError>) async throws -> Void
    ) async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write(bytes)
        } _: { server in
            try await withTransport { transport in
                var request = get(server, method: method)
                // For a busy machine.
                request.timeouts = Timeouts(connect: .seconds(120), read: .seconds(120))
                let result: Result<TransportResponse, TransportError>
                do throws(TransportError) {
                    result = .success(try await transport.send(request))
                } catch {
                    result = .failure(error)
                }
                try await body(result)
            }
        }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 5),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 0),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
                "hello", nil
            ),
            ("HTTP/1.1 200 OK\r\n\r\nhello", "hello", nil), ("HTTP/1.0 200\r\n\r\n", "", nil),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "", 0),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", 0),
            ("HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx", "x", 1),
            // Bytes behind the end belong to no response.
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
                "hello", 5
            ),
        ] as [(String, String, Int64?)]) func contentIsRead(bytes: String, content: String, length: Int64?) async throws
    {
        try await answer(bytes) { result in
            let response = try result.get()
            #expect(response.body.length == length)
            #expect(try await response.body.text() == content)
            #expect(bytes.contains(" \(response.head.status.code)"))
        }
    }

    @Test func headHasNoContent() async throws {
        try await answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", method: .head) { result in
            let response = try result.get()
            #expect(response.head.headerFields[.contentLength] == "5")
            #expect(try await response.body.piece() == nil)
        }
    }

    @Test func fieldsAreKeptAsTheyAre() async throws {
        try await answer(
            "HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nX-\u{2A}: caf\u{e9}\r\nset-cookie: b\r\nConnection: x\r\nContent-Length: 0\r\n\r\n"
        ) { result in
            let head = try result.get().head
            #expect(head.status.reasonPhrase == "Fine")
            #expect(
                head.headerFields.map(\.name.rawName) == [
                    "Set-Cookie", "X-*", "set-cookie", "Connection", "Content-Length",
                ])
            #expect(head.headerFields[1].withUnsafeBytesOfValue { Array($0) } == Array("caf".utf8) + [0xe9])
        }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", .incompleteResponse),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", .incompleteResponse),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .incompleteResponse),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", .incompleteResponse),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", .malformedResponse),
        ] as [(String, TransportError.Code)])
    func contentThatIsCutOffFails(bytes: String, code: TransportError.Code) async throws {
        try await answer(bytes) { result in
            let body = try result.get().body
            var content: [UInt8] = []
            let error = await failure { () throws(TransportError) in
                while let piece = try await body.next() { content += piece }
            }
            #expect(error?.code == code)
            #expect(error?.mayHaveBeenSeen == true)
            // What came before the end is delivered.
            #expect(Array("hello".utf8).starts(with: content) && content.count >= 3)
        }
    }

    @Test(
        arguments: [
            ("", .closed), ("HTTP/1.1 200 OK\r\nContent-Le", .incompleteResponse),
            ("SSH-2.0-x\r\n\r\n", .malformedResponse),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", .malformedResponse),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", .malformedResponse),
            ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", .malformedResponse),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .malformedResponse),
            ("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 70_000))\r\n\r\n", .responseTooLarge),
            (String(repeating: "HTTP/1.1 103 x\r\n\r\n", count: 10_001), .malformedResponse),
        ] as [(String, TransportError.Code)]) func noResponseFails(bytes: String, code: TransportError.Code)
        async throws
    {
        try await answer(bytes) { result in
            guard case .failure(let error) = result else {
                Issue.record("a response")
                return
            }
            #expect(error.code == code)
            #expect(error.mayHaveBeenSeen)
        }
    }

    @Test func interimResponsesComeFirst() async throws {
        try await answerInterim { codes, response in
            #expect(codes == ["100 ", "103 <a>", "102 "])
            #expect(response == "done")
        }
    }

    private func answerInterim(_ check: @Sendable ([String], String) -> Void) async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            // In one piece with the final one, and cut in the middle.
            try await peer.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 1")
            try await peer.write("02 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        } _: { server in
            try await withTransport { transport in
                let log = Log()
                let text = try await transport.text(
                    get(server) { head in
                        // For another order of events; nothing is waited for.
                        await Task.yield()
                        log.add("\(head.status.code) \(head.headerFields[.init("Link")!] ?? "")")
                    })
                check(log.lines, text)
            }
        }
    }

    /// No piece ends where a head does.
    @Test func headsInPiecesTakeNoMoreRoomThanOne() throws {
        var reader = ResponseReader(HeadLimits(headBytes: 64 << 10, fields: 100))
        let head = "HTTP/1.1 103 Early Hints\r\nLink: <\(String(repeating: "x", count: 1_000))>\r\n\r\n"
        let stream = Array(String(repeating: head, count: 1_000).utf8)
        var count = 0
        let size = head.utf8.count
        for round in 0..<999 {
            let start = round == 0 ? 0 : round * size + 7
            var piece = ByteBuffer(bytes: stream[start..<(round + 1) * size + 7])
            reader.receive(&piece)
            while try reader.nextHead(answering: .get) != nil { count += 1 }
        }
        #expect(count == 999 && reader.capacity <= 16 << 10, "\(count) \(reader.capacity)")
    }

    /// A server may say for hours that it is at work.
    @Test func manyInterimResponses() async throws {
        try await answer(
            String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 9_999) + "HTTP/1.1 204 No Content\r\n\r\n"
        ) { result in
            #expect((try? result.get())?.head.status == .noContent)
        }
    }

    /// A reset may have cut off what the end of the connection ends.
    @Test func aResetIsNoEnd() async throws {
        let mayGo = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\n\r\nhello")
            await mayGo.wait()
            try await peer.reset()
        } _: { server in
            try await withTransport { transport in
                let body = try await transport.send(get(server)).body
                #expect(try await body.piece() == "hello")
                mayGo.open()
                #expect(
                    await failure { () throws(TransportError) in try await body.next() }?.code == .incompleteResponse)
            }
        }
    }
}
