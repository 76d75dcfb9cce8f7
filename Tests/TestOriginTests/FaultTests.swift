import HTTPTestSupport
import NIOCore
import TestOrigin
import Testing

/// Answers that are wrong in the way that was ordered.
struct FaultTests {
    @Test func truncatedContentEndsWithTheConnection() async throws {
        try await withOrigin { _ in
            .ok("0123456789").truncated(after: 4)
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            let head = try await client.head()
            #expect(head["Content-Length"] == "10")
            try await #expect(client.rest() == Array("0123".utf8))
        }
    }

    @Test func truncatedChunksLackWhatFollows() async throws {
        try await withOrigin { _ in
            .ok("0123").then("456789").chunked().truncated(after: 6)
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            _ = try await client.head()
            try await #expect(client.rest() == Array("4\r\n0123\r\n6\r\n45".utf8))
        }
    }

    @Test func chunksWithoutTheLastChunk() async throws {
        try await withOrigin { _ in
            .ok("0123").chunked().truncated(after: 4)
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            _ = try await client.head()
            try await #expect(client.rest() == Array("4\r\n0123\r\n".utf8))
        }
    }

    @Test func resetIsAnErrorAtTheClient() async throws {
        try await withOrigin { _ in
            .ok("0123456789").truncated(after: 4, then: .reset)
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            await #expect(throws: IOError.self) { _ = try await client.rest() }
        }
    }

    @Test func silenceLastsUntilTheClientLeaves() async throws {
        try await withOrigin { _ in
            .silent
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            await origin.wait { $0.requests.count == 1 }
            #expect(origin.history.connectionsOpen == 1)
            try await client.close()
            await origin.wait { $0.connectionsOpen == 0 }
        }
    }

    @Test func wrongLengthGarbageAndRawBytesGoOut() async throws {
        try await withOrigin { request in
            switch request.path {
            case "/short": .ok("abc").declaringLength(2).closing()
            case "/long": .ok("abc").declaringLength(9).closing()
            case "/garbage": .ok("abc").garbage("HTTP/1.1 200 OK\r\n\r\n").closing()
            default: .raw("what is this?")
            }
        } _: { origin in
            func content(_ path: String) async throws -> String {
                let client = try await RawClient.connect(to: origin.port)
                try await client.send(get(path))
                let text = String(decoding: try await client.rest(), as: UTF8.self)
                return text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
                    .dropFirst().first.map(String.init) ?? text
            }
            try await #expect(content("/short") == "abc")
            try await #expect(content("/long") == "abc")
            try await #expect(content("/garbage") == "abcHTTP/1.1 200 OK\r\n\r\n")
            try await #expect(content("/raw") == "what is this?")
        }
    }

    @Test(arguments: [
        "GET /\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    ])
    func malformedRequestsAreNotedAndRefused(_ text: String) async throws {
        try await withOrigin { _ in
            .ok("never")
        } _: { origin in
            try await #expect(exchange(origin.port, text).status == 400)
            #expect(origin.history.failures.count == 1)
            #expect(origin.requests.isEmpty)
        }
    }
}
