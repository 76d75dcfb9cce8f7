import HTTPWire
import NIOCore
import NIOEmbedded
import Testing

@testable import LarderNIOTransport

/// When a connection has ended, no part of it stays in memory.
struct FreedConnectionTests {
    private let endpoint = NIOTransport.Endpoint(host: "127.0.0.1", port: 1)
    private let pool = ConnectionPool(connectionsPerHost: 1, waitingPerHost: 1, sessionsPerHost: 1)

    /// Opens a connection, and closes it; returns what must be freed by then.
    private func use(
        _ add: (EmbeddedChannel, ConnectionOpening) throws -> Void, received bytes: [UInt8] = []
    ) throws -> () -> [AnyObject?] {
        let channel = EmbeddedChannel()
        let opening = ConnectionOpening(channel.eventLoop)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(OpeningHandler(opening))
        try add(channel, opening)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        if !bytes.isEmpty { try channel.writeInbound(ByteBuffer(bytes: bytes)) }
        weak var connection: Connection?
        weak var session: HTTP2Session?
        switch try opening.result.wait() {
        case .connection(let opened): connection = opened
        case .session(let opened): session = opened
        }
        #expect(connection != nil || session != nil)
        _ = try channel.finish(acceptAlreadyClosed: true)
        return { [connection, session] }
    }

    @Test func aConnectionIsFreed() throws {
        let left = try use { channel, opening in
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(
                    opening, endpoint, pool: pool, limits: HeadLimits(), idleTimeout: .seconds(60), isSecured: true))
        }
        #expect(left().allSatisfy { $0 == nil })
    }

    @Test func aSessionIsFreed() throws {
        // SETTINGS without a parameter.
        let left = try use(
            { channel, opening in
                try HTTP2Session.begin(
                    on: channel, endpoint, opening, pool: pool, headBytes: 1 << 16, idleTimeout: .seconds(60))
            }, received: [0, 0, 0, 4, 0, 0, 0, 0, 0])
        #expect(left().allSatisfy { $0 == nil })
    }
}
