import AsyncHTTPClient
import Larder
import LarderAsyncHTTPClient
import NIOCore
import NIOPosix

/// Answers each connection with the same bytes.
final class FixedAnswer: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello"
        context.channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
    }
}

// A client in the working directory: the first answer comes from the server, the second does not.
let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    .childChannelInitializer { $0.pipeline.addHandler(FixedAnswer()) }
    .bind(host: "127.0.0.1", port: 0).get()
let store = try Store(at: "store")
let client = CachingHTTPClient(store: store)
let request = HTTPClientRequest(url: "http://127.0.0.1:\(server.localAddress!.port!)/")
for number in 1...2 {
    let response = try await client.execute(request, timeout: .seconds(30))
    let text = String(buffer: try await response.body.collect(upTo: 100))
    let isHit = response.headers.first(name: "Cache-Status")?.contains("hit") ?? false
    guard text == "hello", isHit == (number == 2) else { fatalError("answer \(number): \(response)") }
    await client.cache.drain()
}
try await client.shutdown().get()
try store.close()
try await server.close().get()
print("fetched from network, then hit")
