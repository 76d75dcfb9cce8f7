import HTTPWire
import LarderHTTP
import Locks
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import LarderNIOTransport

/// A request in calls on an event loop opens its connection there, if none is idle.
struct RelayingTests {
    private static let head = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)

    /// What arrived, in words.
    private final class Received: Sendable {
        private let state = Mutex<[String]>([])
        var events: [String] { state.withLock { $0 } }

        func add(_ event: RelayEvent) {
            let text =
                switch event {
                case .informational(let head): "informational \(head.status.code)"
                case .response(let head, let body): "\(head.status.code) \(body.whole.map { $0.count } ?? -1)"
                case .failure(let error): "\(error.code) \(error.mayHaveBeenSeen)"
                }
            state.withLock { $0.append(text) }
        }
    }

    /// Calls `relay`, and `then` with the exchange if there is one, on one event loop.
    private func relay(
        _ transport: NIOTransport, _ authority: String, on loop: any EventLoop, _ received: Received,
        then: @escaping @Sendable (any RelayedExchange) -> Void = { _ in }
    ) async throws -> Bool {
        let route = try #require(transport.route(scheme: "http", authority: authority))
        return try await loop.submit {
            guard let exchange = transport.relay(Self.head, to: route, Timeouts(), { received.add($0) }) else {
                return false
            }
            then(exchange)
            return true
        }.get()
    }

    private func answering(_ peer: inout Peer) async throws {
        while true {
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
    }

    @Test func oneIsOpenedAndKept() async throws {
        let loops = Array(MultiThreadedEventLoopGroup.singleton.makeIterator())
        try await ScriptedServer.run(script: { try await answering(&$0) }) { server in
            try await withTransport { transport in
                let received = Received()
                for count in 1...3 {
                    try await #expect(relay(transport, server.authority, on: loops[0], received))
                    try await waitWhile { received.events.count < count }
                }
                #expect(received.events == ["200 2", "200 2", "200 2"])
                #expect(server.connections == 1)
                // One that is idle on another event loop is for who can wait for it.
                let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: server.port, isTLS: false)
                try await waitWhile { transport.pool.load(endpoint).idle != 1 }
                if loops.count > 1 {
                    try await #expect(!relay(transport, server.authority, on: loops[1], received))
                }
            }
        }
    }

    @Test func noneIsOpenedWhereAllPlacesAreTaken() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let released = Counter()
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await waitWhile { released.value == 0 }
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        } _: { server in
            try await withTransport(.init(connectionsPerHost: 1)) { transport in
                let received = Received()
                try await #expect(relay(transport, server.authority, on: loop, received))
                try await #expect(!relay(transport, server.authority, on: loop, received))
                released.increment()
                try await waitWhile { received.events.isEmpty }
                #expect(received.events == ["200 0"])
            }
        }
    }

    /// What is not listened to, and what is listened to no more.
    @Test func oneThatIsRefusedGivesItsPlaceBack() async throws {
        let port = try await ScriptedServer.run(script: { _ in }, { $0.port })
        try await withTransport { transport in
            let received = Received()
            let loop = MultiThreadedEventLoopGroup.singleton.any()
            try await #expect(relay(transport, "127.0.0.1:\(port)", on: loop, received))
            try await waitWhile { received.events.isEmpty }
            #expect(received.events == ["cannotConnect false"])
            let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: port, isTLS: false)
            try await waitWhile { transport.pool.load(endpoint).places != 0 }
        }
    }

    @Test func oneThatIsNotWantedAnyMoreIsClosed() async throws {
        try await ScriptedServer.run(script: { try await answering(&$0) }) { server in
            try await withTransport { transport in
                let received = Received()
                let loop = MultiThreadedEventLoopGroup.singleton.any()
                try await #expect(relay(transport, server.authority, on: loop, received) { $0.cancel() })
                let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: server.port, isTLS: false)
                try await waitWhile { transport.pool.load(endpoint).places != 0 }
                #expect(received.events.isEmpty)
            }
        }
    }

    @Test func aClosedTransportOpensNone() async throws {
        let transport = NIOTransport()
        await transport.close()
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        try await #expect(!relay(transport, "127.0.0.1:1", on: loop, Received()))
    }
}
