import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import NIOCore
import NIOPosix
import TestOrigin
import TestSupport
import Testing

/// CONNECT.
struct TunnelTests {
    private func withTunnels(
        to ports: Set<Int>, _ body: (Setting) async throws -> Void
    ) async throws {
        let transport = ScriptedTransport { _ in .text("not through a tunnel") }
        try await withGateway(transport: transport) {
            $0.routes = Routes(allowsForwarding: true)
            $0.tunnels = TunnelPolicy(isAllowed: true, ports: ports)
        } _: { setting in
            try await body(setting)
            #expect(transport.requests.isEmpty)
        }
    }

    private func connect(_ port: Int, _ more: String = "") -> String {
        "CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n" + more
    }

    @Test func bytesGoToAndFro() async throws {
        let origin = try await TestOrigin.start { request in .ok("through \(request.target)") }
        try await withTunnels(to: [origin.port]) { setting in
            let client = try await setting.connect()
            try await client.send(connect(origin.port))
            let response = try await client.response(to: "CONNECT")
            #expect(response.statusLine == "HTTP/1.1 200 Connection Established")
            #expect(response["Content-Length"] == nil)
            for path in ["/1", "/2"] { try await #expect(client.exchange(get(path)).text == "through \(path)") }
            #expect(origin.requests.map(\.connection) == [1, 1])
            // The gateway changes nothing.
            #expect(origin.requests[0].fields.map(\.name.rawName) == ["Host"])
            try await client.close()
            await origin.wait { $0.connectionsOpen == 0 }
        }
        await origin.stop()
    }

    @Test func bytesSentAtOnceAreNotLost() async throws {
        let origin = try await TestOrigin.start { request in .ok("early") }
        try await withTunnels(to: [origin.port]) { setting in
            let client = try await setting.connect()
            try await client.send(connect(origin.port, get("/")))
            _ = try await client.response(to: "CONNECT")
            try await #expect(client.response().text == "early")
            try await client.close()
        }
        await origin.stop()
    }

    /// Each direction ends on its own.
    @Test func aHalfThatEndsLeavesTheOtherOpen() async throws {
        let echo = try await EchoServer.start()
        let content = body(5 << 20)
        try await withTunnels(to: [echo.port]) { setting in
            let client = try await setting.connect()
            try await client.send(connect(echo.port))
            _ = try await client.response(to: "CONNECT")
            let sender = client.sender
            let sending = Task { try await sender.send(content) }
            try await #expect(client.bytes(content.count) == content)
            try await sending.value
            try await client.send("last words")
            try await client.finishSending()
            try await #expect(client.rest() == Array("last words".utf8))
        }
        await echo.stop()
    }

    @Test func theHostsEndReachesTheClient() async throws {
        let origin = try await TestOrigin.start { _ in .ok("bye").closing() }
        try await withTunnels(to: [origin.port]) { setting in
            let client = try await setting.connect()
            try await client.send(connect(origin.port, get("/")))
            _ = try await client.response(to: "CONNECT")
            try await #expect(String(decoding: client.rest(), as: UTF8.self).hasSuffix("bye"))
        }
        await origin.stop()
    }

    @Test func whatIsNotAllowedIsRefused() async throws {
        let origin = try await TestOrigin.start()
        try await withTunnels(to: [443]) { setting in
            try await #expect(exchange(setting.port, connect(origin.port)).status == 403)
            try await #expect(exchange(setting.port, "CONNECT example.org HTTP/1.1\r\nHost: a\r\n\r\n").status == 400)
            try await #expect(exchange(setting.port, "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n").status == 400)
        }
        try await withGateway(transport: ScriptedTransport { _ in .text("") }) { setting in
            try await #expect(exchange(setting.port, connect(origin.port)).status == 405)
        }
        #expect(origin.history.connectionsAccepted == 0)
        await origin.stop()
    }

    @Test func aHostThatCannotBeReachedIs502() async throws {
        let origin = try await TestOrigin.start()
        await origin.stop()
        try await withTunnels(to: [origin.port]) { setting in
            try await #expect(exchange(setting.port, connect(origin.port)).status == 502)
        }
    }

    @Test func aSilentTunnelIsClosed() async throws {
        let echo = try await EchoServer.start()
        try await withTunnels(to: [echo.port]) { setting in
            let client = try await setting.connect()
            try await client.send(connect(echo.port))
            _ = try await client.response(to: "CONNECT")
            await setting.pass(seconds: 500)
            try await client.send("x")
            try await #expect(client.bytes(1) == [0x78])
            await setting.pass(seconds: 500)
            try await client.send("y")
            try await #expect(client.bytes(1) == [0x79])
            await setting.pass(seconds: 601)
            try await #expect(client.rest().isEmpty)
        }
        await echo.stop()
    }
}

/// Sends back what it gets, and closes its half when the other is closed.
private struct EchoServer {
    let channel: any Channel
    var port: Int { channel.localAddress?.port ?? 0 }

    static func start() async throws -> EchoServer {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { $0.pipeline.addHandler(Echo()) }
            .bind(host: "127.0.0.1", port: 0).get()
        return EchoServer(channel: channel)
    }

    func stop() async { try? await channel.close().get() }

    private final class Echo: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case ChannelEvent.inputClosed = event {
                context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
                    context.close(promise: nil)
                }
            }
        }
    }
}
