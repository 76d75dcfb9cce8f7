import HTTPTypes
import LarderHTTP
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import LarderNIOTransport

struct ConnectionTests {
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"

    private func endpoint(_ server: ScriptedServer) -> NIOTransport.Endpoint {
        NIOTransport.Endpoint(host: "127.0.0.1", port: server.port)
    }

    /// Answers every request with the number of its connection.
    private static let forEver: ScriptedServer.Script = { peer in
        while true {
            _ = try await peer.head()
            try await peer.write(answer + "\(peer.index)")
        }
    }

    @Test func aConnectionIsUsedAgain() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport { transport in
                for _ in 0..<20 { try await transport.send(get(server), expecting: "0") }
            }
            #expect(server.connections == 1)
        }
    }

    /// Content that needs no reading needs no reader either.
    @Test func aConnectionIsFreeAtTheEndOfTheMessage() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport { transport in
                var responses: [TransportResponse] = []
                for _ in 0..<5 { responses.append(try await transport.send(get(server))) }
                for response in responses { #expect(try await response.body.text() == "0") }
            }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n\r\n",
    ]) func aConnectionIsNotUsedAgain(bytes: String) async throws {
        try await ScriptedServer.run { peer in
            while true {
                _ = try await peer.head()
                try await peer.write(bytes)
            }
        } _: { server in
            try await withTransport { transport in
                for index in 1...3 {
                    try await transport.send(get(server), expecting: "x")
                    #expect(server.connections == index)
                }
            }
        }
    }

    @Test func withoutIdleTimeNoConnectionIsUsedAgain() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport(.init(idleTimeout: .zero)) { transport in
                try await transport.send(get(server), expecting: "0")
                try await transport.send(get(server), expecting: "1")
            }
        }
    }

    @Test func anIdleConnectionIsClosedInTime() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport(.init(idleTimeout: .milliseconds(20))) { transport in
                try await transport.send(get(server), expecting: "0")
                try await waitWhile { transport.pool.load(endpoint(server)).places != 0 }
                try await transport.send(get(server), expecting: "1")
            }
        }
    }

    /// The server closes, or sends bytes that were not asked for.
    @Test(arguments: ["", "HTTP/1.1 408 Request Timeout\r\n\r\n"]) func anIdleConnectionThatSpeaksIsDropped(
        bytes: String
    ) async throws {
        let mayGo = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write(Self.answer + "\(peer.index)")
            guard peer.index == 0 else { return }
            await mayGo.wait()
            guard !bytes.isEmpty else { return }
            try await peer.write(bytes)
            _ = await peer.readToEnd()
        } _: { server in
            try await withTransport { transport in
                try await transport.send(get(server), expecting: "0")
                #expect(transport.pool.load(endpoint(server)).idle == 1)
                mayGo.open()
                try await waitWhile { transport.pool.load(endpoint(server)).places != 0 }
                try await transport.send(get(server), expecting: "1")
            }
        }
    }

    /// It closed after it was taken, and before a byte of the request was written.
    @Test func aKeptConnectionThatIsClosedIsReplaced() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport { transport in
                // A place at the endpoint stays taken, so that it takes connections back.
                let held = try await transport.pool.acquire(endpoint(server), .distantFuture, timer: Self.loop)
                guard case .place = held else { Issue.record("a connection at the start"); return }
                try await transport.send(get(server), expecting: "0")
                guard
                    case .kept(let closed) = try await transport.pool.acquire(
                        endpoint(server), .distantFuture, timer: Self.loop)
                else { Issue.record("no connection was kept"); return }
                await closed.close()
                #expect(transport.pool.keep(closed))
                try await transport.send(get(server), expecting: "1")
            }
        }
    }

    private static var loop: any EventLoop { MultiThreadedEventLoopGroup.singleton.any() }

    @Test func requestsShareConnections() async throws {
        try await ScriptedServer.run(script: Self.forEver) { server in
            try await withTransport(.init(connectionsPerHost: 4)) { transport in
                // With a sanitizer the last of them waits longer than connections usually take.
                var request = get(server)
                request.timeouts.connect = .seconds(120)
                try await withThrowingTaskGroup(of: Int?.self) { [request] group in
                    for _ in 0..<64 { group.addTask { Int(try await transport.text(request)) } }
                    var used: Set<Int?> = []
                    for try await index in group { used.insert(index) }
                    #expect(used.isSubset(of: [0, 1, 2, 3]))
                }
                let load = transport.pool.load(endpoint(server))
                #expect(load.places == load.idle && load.waiting == 0)
            }
            #expect(server.connections <= 4)
        }
    }

    /// All 64 are there before the first is answered.
    @Test func manyRequestsRunAtOnce() async throws {
        let arrived = Counter()
        let all = Latch()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            if arrived.increment() == 64 { all.open() }
            await all.wait()
            try await peer.write(Self.answer + "x")
        } _: { server in
            try await withTransport { transport in
                try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 0..<64 { group.addTask { try await transport.text(get(server)) } }
                    for try await text in group { #expect(text == "x") }
                }
            }
        }
    }

    @Test func aQueueThatIsFullRefuses() async throws {
        let mayAnswer = Latch()
        try await ScriptedServer.run { peer in
            while true {
                _ = try await peer.head()
                await mayAnswer.wait()
                try await peer.write(Self.answer + "x")
            }
        } _: { server in
            try await withTransport(.init(connectionsPerHost: 1, waitingPerHost: 1)) { transport in
                async let first = transport.text(get(server))
                try await waitWhile { transport.pool.load(endpoint(server)).places != 1 }
                async let second = transport.text(get(server))
                try await waitWhile { transport.pool.load(endpoint(server)).waiting != 1 }
                let error = await failure { () throws(TransportError) in try await transport.send(get(server)) }
                #expect(error?.code == .overloaded)
                #expect(error?.mayHaveBeenSeen == false)
                mayAnswer.open()
                let texts = try await [first, second]
                #expect(texts == ["x", "x"])
            }
        }
    }

    @Test func aClosedTransportRefuses() async throws {
        let mayAnswer = Latch()
        let idleEnded = Latch()
        try await ScriptedServer.run { peer in
            if try await peer.head().hasPrefix("GET /slow") { await mayAnswer.wait() }
            try await peer.write(Self.answer + "x")
            _ = await peer.readToEnd()
            idleEnded.open()
        } _: { server in
            let transport = NIOTransport()
            async let slow = transport.text(get(server, "/slow"))
            try await waitWhile { server.connections != 1 }
            try await transport.send(get(server), expecting: "x")
            await transport.close()
            await idleEnded.wait()
            let error = await failure { () throws(TransportError) in try await transport.send(get(server)) }
            #expect(error?.code == .cannotConnect)
            mayAnswer.open()
            // What was under way ends well, and its connection is not kept.
            #expect(try await slow == "x")
            try await waitWhile { transport.pool.load(endpoint(server)).places != 0 }
        }
    }

    @Test func nobodyListens() async throws {
        let port = try await ScriptedServer.run { _ in
        } _: {
            $0.port
        }
        try await withTransport { transport in
            let head = HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1:\(port)", path: "/")
            let error = await failure { () throws(TransportError) in
                try await transport.send(TransportRequest(head: head))
            }
            #expect(error?.code == .cannotConnect)
            #expect(error?.mayHaveBeenSeen == false)
            #expect(error?.message.contains("127.0.0.1:\(port)") == true)
            #expect(error?.endpoint == "127.0.0.1:\(port)" && error?.cause != nil && error?.connectFailure == .refused)
            #expect(transport.pool.load(.init(host: "127.0.0.1", port: port)).places == 0)
        }
    }

    @Test func aNameWithoutAddress() async throws {
        try await withTransport { transport in
            let head = HTTPRequest(method: .get, scheme: "http", authority: "nosuch.invalid", path: "/")
            let error = await failure { () throws(TransportError) in
                try await transport.send(TransportRequest(head: head))
            }
            #expect(error?.code == .cannotConnect)
            #expect(error?.mayHaveBeenSeen == false)
            #expect(error?.message.contains("nosuch.invalid") == true)
        }
    }

    /// A reverse proxy: one origin, whatever the request is for.
    @Test func aRouteSaysWhereToConnect() async throws {
        let log = Log()
        try await ScriptedServer.run { peer in
            while true {
                log.add(try await peer.head())
                try await peer.write(Self.answer + "x")
            }
        } _: { server in
            let route: @Sendable (String, String) -> NIOTransport.Endpoint = { scheme, authority in
                log.add("\(scheme) \(authority)")
                return NIOTransport.Endpoint(host: "127.0.0.1", port: server.port)
            }
            try await withTransport(.init(route: route)) { transport in
                let head = HTTPRequest(method: .get, scheme: "https", authority: "shop.example:444", path: "/")
                try await transport.send(TransportRequest(head: head), expecting: "x")
            }
        }
        #expect(log.lines == ["https shop.example:444", "GET / HTTP/1.1\r\nHost: shop.example:444\r\n\r\n"])
    }

    @Test func aDestinationGoesBeforeTheRoute() async throws {
        let log = Log()
        try await ScriptedServer.run { peer in
            log.add(try await peer.head())
            try await peer.write(Self.answer + "x")
        } _: { server in
            let route: @Sendable (String, String) -> NIOTransport.Endpoint = { _, _ in
                NIOTransport.Endpoint(host: "nosuch.invalid", port: 1)
            }
            try await withTransport(.init(route: route)) { transport in
                var request = TransportRequest(
                    head: HTTPRequest(method: .get, scheme: "https", authority: "shop.example", path: "/"))
                request.destination = TransportDestination(scheme: "http", host: "127.0.0.1", port: server.port)
                try await transport.send(request, expecting: "x")
            }
        }
        #expect(log.lines == ["GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"])
    }
}
