import HTTPTypes
import LarderHTTP
import TestSupport
import Testing

@testable import LarderNIOTransport

/// Servers close kept connections when they like, and so also when the next request is on its way.
struct KeptConnectionTests {
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"

    /// Each connection answers once, and closes on the head of the second request; with `reset`, with RST.
    private static func closesOnTheSecond(_ log: Log, reset: Bool = false) -> ScriptedServer.Script {
        { peer in
            log.add(String(try await peer.head().prefix { $0 != " " }))
            try await peer.write(answer + "\(peer.index)")
            log.add(String(try await peer.head().prefix { $0 != " " }))
            if reset { try await peer.reset() }
        }
    }

    @Test(arguments: [false, true]) func aSafeRequestIsSentOnANewConnection(reset: Bool) async throws {
        let log = Log()
        try await ScriptedServer.run(script: Self.closesOnTheSecond(log, reset: reset)) { server in
            try await withTransport(.init(connectionsPerHost: 1)) { transport in
                try await transport.send(get(server), expecting: "0")
                try await transport.send(get(server), expecting: "1")
                try await transport.send(get(server), expecting: "2")
            }
        }
        #expect(log.lines == ["GET", "GET", "GET", "GET", "GET"])
    }

    /// Content that is sent with the head, and content that is sent behind it.
    @Test(arguments: [10, 200_000]) func contentThatCanBeReadAgainIsSentAgain(count: Int) async throws {
        let content = [UInt8](repeating: 7, count: count)
        try await ScriptedServer.run { peer in
            while true {
                let head = try await peer.head()
                if head.hasPrefix("PUT"), peer.index == 0 { return }
                if head.hasPrefix("PUT") { #expect(try await peer.read(count) == content) }
                try await peer.write(Self.answer + "\(peer.index)")
            }
        } _: { server in
            try await withTransport { transport in
                try await transport.send(get(server), expecting: "0")
                try await transport.send(get(server, method: .put, body: RequestBody(content)), expecting: "1")
            }
        }
    }

    /// Content that came once cannot come again, and what POST did once it must not do twice.
    @Test(arguments: [HTTPRequest.Method.post, .put]) func whatCannotBeRepeatedIsAnError(
        method: HTTPRequest.Method
    ) async throws {
        let log = Log()
        try await ScriptedServer.run(script: Self.closesOnTheSecond(log)) { server in
            try await withTransport { transport in
                try await transport.send(get(server), expecting: "0")
                let pieces = Counter()
                let body =
                    method == .post
                    ? RequestBody([1, 2, 3]) : RequestBody(length: 3) { pieces.increment() == 1 ? [1, 2, 3] : nil }
                let error = await failure { () throws(TransportError) in
                    try await transport.send(get(server, method: method, body: body))
                }
                #expect(error?.code == .closed)
                #expect(error?.mayHaveBeenSeen == true)
                #expect(error?.lostKeptConnection == true)
                #expect(server.connections == 1)
            }
        }
        #expect(log.lines == ["GET", method.rawValue])
    }

    /// The second connection is new: its end says something about the server.
    @Test func aServerThatAlwaysClosesIsAskedTwice() async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            guard peer.index == 0 else { return }
            try await peer.write(Self.answer + "0")
            _ = try await peer.head()
        } _: { server in
            try await withTransport { transport in
                try await transport.send(get(server), expecting: "0")
                let error = await failure { () throws(TransportError) in try await transport.send(get(server)) }
                #expect(error?.code == .closed)
                #expect(error?.lostKeptConnection == false)
                #expect(server.connections == 2)
            }
        }
    }

    /// A byte of the answer is a sign that the server was at work.
    @Test(arguments: ["H", "HTTP/1.1 103 Early Hints\r\n\r\n"]) func anAnswerThatBeganIsNotAskedForAgain(
        bytes: String
    ) async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write(Self.answer + "0")
            _ = try await peer.head()
            try await peer.write(bytes)
        } _: { server in
            try await withTransport { transport in
                try await transport.send(get(server), expecting: "0")
                let error = await failure { () throws(TransportError) in try await transport.send(get(server)) }
                #expect(error?.lostKeptConnection == false)
                #expect(server.connections == 1)
            }
        }
    }

    /// All kept connections are as old as the one that was lost; the new one takes the place of one of them.
    @Test func theOthersThatWereKeptAreNotTried() async throws {
        let both = Counter()
        let together = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            if peer.index < 2 {
                if both.increment() == 2 { together.open() }
                await together.wait()
            }
            try await peer.write(Self.answer + "\(peer.index)")
            _ = try await peer.head()
        } _: { server in
            try await withTransport(.init(connectionsPerHost: 2)) { transport in
                async let first = transport.text(get(server))
                async let second = transport.text(get(server))
                let texts = try await Set([first, second])
                #expect(texts == ["0", "1"])
                try await transport.send(get(server), expecting: "2")
                #expect(server.connections == 3)
            }
        }
    }
}
