import HTTPTypes
import LarderHTTP
import Locks
import TestSupport
import Testing

@testable import LarderNIOTransport

/// Connections to origins that speak HTTP/2: how many requests one carries, when another is made, and when they end.
extension HTTP2Tests {
    /// Sends requests that begin together; each has to be answered with "x". `meanwhile` runs when they have begun.
    private func expectAnswers(
        _ count: Int, from server: HTTP2Server, _ transport: NIOTransport, meanwhile: () async throws -> Void = {}
    ) async throws {
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<count { group.addTask { try await transport.text(request(server)) } }
            try await meanwhile()
            for try await text in group { #expect(text == "x") }
        }
    }

    /// All requests are there at once, on one connection, although they begin together.
    @Test func oneConnectionCarriesManyRequests() async throws {
        let arrived = Counter()
        let all = Latch()
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            if arrived.increment() == 50 { all.open() }
            await all.wait()
            try await peer.answer("x")
        } _: { server in
            try await with { transport in
                try await expectAnswers(50, from: server, transport)
                try await waitWhile { transport.pool.streams(server.endpoint) != 0 }
            }
            #expect(server.connections == 1)
        }
    }

    @Test func theServersLimitHolds() async throws {
        let counts = Mutex((running: 0, most: 0))
        let allAreThere = Latch()
        try await HTTP2Server.run(streams: 2) { peer in
            _ = try await peer.head()
            counts.withLock { counts in
                counts.running += 1
                counts.most = max(counts.most, counts.running)
            }
            await allAreThere.wait()
            counts.withLock { $0.running -= 1 }
            try await peer.answer("x")
        } _: { server in
            try await with { transport in
                try await expectAnswers(20, from: server, transport) {
                    try await waitWhile {
                        counts.withLock { $0.running } < 2 || transport.pool.load(server.endpoint).waiting < 18
                    }
                    allAreThere.open()
                }
            }
            #expect(counts.withLock { $0.most } <= 2)
            #expect(server.connections == 1)
        }
    }

    /// A server with one stream a connection, which answers when it may.
    private func withServerThatWaits(_ body: (HTTP2Server, Counter, Latch) async throws -> Void) async throws {
        let (arrived, mayAnswer) = (Counter(), Latch())
        try await HTTP2Server.run(streams: 1) { peer in
            _ = try await peer.head()
            arrived.increment()
            await mayAnswer.wait()
            try await peer.answer("x")
        } _: { server in
            try await body(server, arrived, mayAnswer)
        }
    }

    /// Where all streams are taken, another connection is made, up to as many as may be.
    @Test func anotherConnectionIsMadeWhereAllStreamsAreTaken() async throws {
        try await withServerThatWaits { server, arrived, mayAnswer in
            try await with(connections: 2) { transport in
                try await expectAnswers(3, from: server, transport) {
                    try await waitWhile { !(arrived.value == 2 && transport.pool.load(server.endpoint).waiting == 1) }
                    mayAnswer.open()
                }
                try await waitWhile { transport.pool.streams(server.endpoint) != 0 }
            }
            #expect(server.connections == 2)
        }
    }

    /// A server that takes no second connection can be reached all the same: its streams have to do.
    @Test func aConnectionThatIsRefusedIsNoFailure() async throws {
        try await withServerThatWaits { server, arrived, mayAnswer in
            try await with(connections: 8) { transport in
                async let first = transport.text(request(server))
                try await waitWhile { arrived.value != 1 }
                try await server.stopListening()
                async let second = transport.text(request(server))
                try await waitWhile { transport.pool.load(server.endpoint).waiting != 1 }
                mayAnswer.open()
                let texts = try await [first, second]
                #expect(texts == ["x", "x"])
            }
        }
    }

    @Test func aQueueThatIsFullRefuses() async throws {
        try await withServerThatWaits { server, _, mayAnswer in
            try await with(waiting: 1) { transport in
                async let first = transport.text(request(server))
                try await waitWhile { transport.pool.streams(server.endpoint) != 1 }
                async let second = transport.text(request(server))
                try await waitWhile { transport.pool.load(server.endpoint).waiting != 1 }
                let error = await failure { () throws(TransportError) in try await transport.send(request(server)) }
                #expect(error?.code == .overloaded)
                mayAnswer.open()
                let texts = try await [first, second]
                #expect(texts == ["x", "x"])
            }
        }
    }

    /// The origin takes connections, so that it must not pass for one that cannot be reached.
    @Test func aStreamThatDoesNotBecomeFreeIsNoUnreachableOrigin() async throws {
        try await withServerThatWaits { server, _, mayAnswer in
            try await with { transport in
                async let first = transport.text(request(server))
                try await waitWhile { transport.pool.streams(server.endpoint) != 1 }
                let waiting = request(server, timeouts: Timeouts(connect: .milliseconds(50)))
                let error = await failure { () throws(TransportError) in try await transport.send(waiting) }
                #expect(error?.code == .overloaded)
                #expect(error?.mayHaveBeenSeen == false)
                mayAnswer.open()
                let text = try await first
                #expect(text == "x")
            }
        }
    }

    @Test func anUnusedConnectionIsClosedInTime() async throws {
        try await HTTP2Server.run(script: Self.echo) { server in
            try await with(idle: .milliseconds(20)) { transport in
                try await transport.send(request(server), expecting: "GET 0")
                try await waitWhile { transport.pool.load(server.endpoint).places != 0 }
                try await transport.send(request(server), expecting: "GET 0")
            }
            #expect(server.connections == 2)
        }
    }

    @Test func aClosedTransportEndsItsConnectionsWithTheirStreams() async throws {
        let (arrived, mayAnswer) = (Latch(), Latch())
        try await HTTP2Server.run { peer in
            _ = try await peer.head()
            arrived.open()
            await mayAnswer.wait()
            try await peer.answer("x")
        } _: { server in
            let transport = NIOTransport(.init(tls: try TestCertificate.client(), http2: true))
            async let slow = transport.text(request(server))
            await arrived.wait()
            await transport.close()
            let error = await failure { () throws(TransportError) in try await transport.send(request(server)) }
            #expect(error?.code == .cannotConnect)
            mayAnswer.open()
            #expect(try await slow == "x")
            try await waitWhile { transport.pool.load(server.endpoint).places != 0 }
        }
    }

    /// Servers that know HTTP/1.1 only get as many connections as they used to.
    @Test func aServerWithoutHTTP2IsTalkedToAsBefore() async throws {
        let arrived = Counter()
        let all = Latch()
        try await ScriptedServer.run(certificate: .address) { peer in
            _ = try await peer.head()
            if arrived.increment() == 10 { all.open() }
            await all.wait()
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        } _: { server in
            try await with { transport in
                try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 0..<10 { group.addTask { try await transport.text(get(server, scheme: "https")) } }
                    for try await text in group { #expect(text == "x") }
                }
            }
        }
    }

    /// Requests that wait for what the first connection finds out do not wait without end.
    @Test func aServerThatCannotBeReachedFailsForAll() async throws {
        let port = try await ScriptedServer.run { _ in
        } _: {
            $0.port
        }
        try await with { transport in
            let head = HTTPRequest(method: .get, scheme: "https", authority: "127.0.0.1:\(port)", path: "/")
            await withTaskGroup(of: TransportError.Code?.self) { group in
                for _ in 0..<10 {
                    group.addTask {
                        await failure { () throws(TransportError) in
                            try await transport.send(TransportRequest(head: head))
                        }?.code
                    }
                }
                for await kind in group { #expect(kind == .cannotConnect) }
            }
        }
    }
}
