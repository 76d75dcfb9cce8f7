import HTTPTypes
import LarderHTTP
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import LarderNIOTransport

/// Time limits, cancellation and backpressure.
struct LimitTests {
    private static let short = Timeouts(read: .milliseconds(100), write: .milliseconds(100))
    private static let shortConnect = Timeouts(connect: .milliseconds(100))

    /// A server that takes connections, and no byte of them.
    private func deaf(_ body: (_ authority: String) async throws -> Void) async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0).get()
        try await body("127.0.0.1:\(listener.localAddress?.port ?? 0)")
        try await listener.close()
    }

    private func request(_ authority: String, scheme: String = "http", body: RequestBody? = nil) -> TransportRequest {
        TransportRequest(
            head: HTTPRequest(method: .put, scheme: scheme, authority: authority, path: "/"), body: body,
            timeouts: scheme == "https" ? Self.shortConnect : Self.short)
    }

    @Test func tlsThatDoesNotComeTimesOut() async throws {
        try await deaf { authority in
            try await withTransport { transport in
                let error = await failure { () throws(TransportError) in
                    try await transport.send(request(authority, scheme: "https"))
                }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == false)
            }
        }
    }

    @Test func aResponseThatDoesNotComeTimesOut() async throws {
        try await deaf { authority in
            try await withTransport { transport in
                let error = await failure { () throws(TransportError) in try await transport.send(request(authority)) }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == true)
                #expect(error?.message.contains("did not answer") == true)
            }
        }
    }

    @Test func contentThatIsNotTakenTimesOut() async throws {
        try await deaf { authority in
            try await withTransport { transport in
                let taken = Counter()
                let body = RequestBody(length: nil) {
                    taken.add(64 << 10)
                    return [UInt8](repeating: 1, count: 64 << 10)
                }
                let error = await failure { () throws(TransportError) in
                    try await transport.send(request(authority, body: body))
                }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == true)
                #expect(error?.message.contains("did not take") == true)
                // No more than the system's buffers hold.
                #expect(taken.value < 32 << 20)
            }
        }
    }

    @Test func contentThatStopsTimesOut() async throws {
        let ended = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
            _ = await peer.readToEnd()
            ended.open()
        } _: { server in
            try await withTransport { transport in
                // The head has the same limit: on a busy machine it may be late.
                var sent: TransportBody?
                while sent == nil {
                    sent = try? await transport.send(get(server, timeouts: Self.short)).body
                }
                let body = try #require(sent)
                #expect(try await body.piece() == "hello")
                #expect(await failure { () throws(TransportError) in try await body.next() }?.code == .timedOut)
                await ended.wait()
            }
        }
    }

    /// A head that comes byte by byte does not count as progress.
    @Test func aHeadThatDripsTimesOut() async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\nX: ")
            while true { try await peer.write("x") }
        } _: { server in
            try await withTransport(.init(maximumHeadBytes: 1 << 30)) { transport in
                let error = await failure { () throws(TransportError) in
                    try await transport.send(get(server, timeouts: Self.short))
                }
                #expect(error?.code == .timedOut)
            }
        }
    }

    /// Nor do interim responses, but for those that say that the server is at work (102).
    @Test func interimResponsesDoNotHoldUpTheLimit() async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            while true { try await peer.write("HTTP/1.1 103 Early Hints\r\n\r\n") }
        } _: { server in
            try await withTransport { transport in
                let error = await failure { () throws(TransportError) in
                    try await transport.send(get(server, timeouts: Timeouts(read: .milliseconds(5))))
                }
                #expect(error?.code == .timedOut)
            }
        }
    }

    @Test func aQueueTimesOut() async throws {
        try await ScriptedServer.run { peer in
            _ = await peer.readToEnd()
        } _: { server in
            try await withTransport(.init(connectionsPerHost: 1)) { transport in
                let first = Task { try await transport.send(get(server)) }
                let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: server.port)
                try await waitWhile { transport.pool.load(endpoint).places != 1 }
                let error = await failure { () throws(TransportError) in
                    try await transport.send(get(server, timeouts: Self.shortConnect))
                }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == false)
                first.cancel()
                _ = await first.result
            }
        }
    }

    // MARK: Cancellation

    /// Where a request is when it is cancelled.
    enum Stage: CaseIterable { case before, connecting, waiting, head, content }

    @Test(arguments: Stage.allCases) func cancellationEndsARequest(stage: Stage) async throws {
        let reached = Latch()
        let ended = Latch()
        try await ScriptedServer.run { peer in
            if stage == .connecting { reached.open() }
            if stage == .head || stage == .content { _ = try await peer.head() }
            if stage == .head { reached.open() }
            if stage == .content { try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello") }
            _ = await peer.readToEnd()
            ended.open()
        } _: { server in
            try await withTransport(.init(connectionsPerHost: 1)) { transport in
                let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: server.port)
                let blocker = stage == .waiting ? Task { try await transport.send(get(server)) } : nil
                if stage == .waiting { try await waitWhile { transport.pool.load(endpoint).places != 1 } }
                let start = Latch()
                let task = Task {
                    await start.wait()
                    return await failure { () throws(TransportError) in
                        let scheme = stage == .connecting ? "https" : "http"
                        let body = try await transport.send(get(server, scheme: scheme)).body
                        _ = try await body.next()
                        reached.open()
                        _ = try await body.next()
                    }
                }
                if stage == .before { task.cancel() }
                start.open()
                if stage == .waiting { try await waitWhile { transport.pool.load(endpoint).waiting != 1 } }
                if [.connecting, .head, .content].contains(stage) { await reached.wait() }
                task.cancel()
                let error = await task.value
                #expect(error?.code == .cancelled)
                #expect(error?.mayHaveBeenSeen == [.head, .content].contains(stage))
                blocker?.cancel()
                _ = await blocker?.result
                if stage != .before { await ended.wait() }
                for isTLS in [false, true] {
                    let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: server.port, isTLS: isTLS)
                    try await waitWhile { transport.pool.load(endpoint).places != 0 }
                    #expect(transport.pool.load(endpoint).waiting == 0)
                }
            }
        }
    }

    @Test func contentThatIsDroppedClosesTheConnection() async throws {
        let ended = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
            _ = await peer.readToEnd()
            ended.open()
        } _: { server in
            try await withTransport { transport in
                _ = try await transport.send(get(server))
                await ended.wait()
            }
        }
    }

    // MARK: Backpressure

    @Test(arguments: [false, true]) func aServerThatIsFastWaitsForTheReader(isTLS: Bool) async throws {
        let total = 100 << 20
        let chunk = [UInt8](repeating: 7, count: 256 << 10)
        let written = Counter()
        try await ScriptedServer.run(certificate: isTLS ? .address : nil) { peer in
            let head = try await peer.head()
            guard head.hasPrefix("GET /big") else {
                while true {
                    try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
                    _ = try await peer.head()
                }
            }
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            for _ in 0..<(total / chunk.count) {
                try await peer.write(chunk)
                written.add(chunk.count)
            }
        } _: { server in
            let scheme = isTLS ? "https" : "http"
            try await withTransport(.init(tls: TestCertificate.client())) { transport in
                let body = try await transport.send(get(server, "/big", scheme: scheme)).body
                var count = try await body.next()?.count ?? 0
                // Time enough for the server to write everything, if it could.
                for _ in 0..<200 { try await transport.send(get(server, scheme: scheme), expecting: "x") }
                #expect(written.value < 32 << 20)
                #expect((1...256 << 10).contains(transport.heldBytes), "\(transport.heldBytes)")
                var isRight = true
                while let piece = try await body.next() {
                    count += piece.count
                    #expect(piece.count <= 1 << 20)
                    isRight = isRight && piece.first == 7 && piece.last == 7
                }
                #expect(count == total)
                #expect(isRight)
                #expect(transport.heldBytes <= 64 << 10)
            }
        }
    }
}
