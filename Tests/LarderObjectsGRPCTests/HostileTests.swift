import GRPCCore
import Larder
import LarderObjectsGRPC
import NIOCore
import NIOHPACK
import NIOPosix
import SwiftProtobuf
import SeededData
import TestSupport
import Testing

/// Clients that do not keep to HTTP/2, to gRPC or to limits.
struct HostileTests {
    /// A connection whose frames are written by hand (RFC 9113 section 4.1).
    private struct Connection {
        let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>

        static func with(_ port: Int, _ body: (Connection, inout Incoming) async throws -> Void) async throws {
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            try await channel.executeThenClose { input, output in
                try await output.write(ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
                var incoming = Incoming(output: output, iterator: input.makeAsyncIterator())
                try await incoming.write(type: 4, stream: 0, [])
                try await body(Connection(channel: channel), &incoming)
            }
        }
    }

    private struct Incoming {
        let output: NIOAsyncChannelOutboundWriter<ByteBuffer>
        var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator

        func write(type: UInt8, flags: UInt8 = 0, stream: UInt32, length: Int? = nil, _ payload: [UInt8]) async throws {
            let length = length ?? payload.count
            var frame = ByteBuffer()
            frame.writeBytes([UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags])
            frame.writeInteger(stream)
            frame.writeBytes(payload)
            try await output.write(frame)
        }

        /// The head of a call.
        func begin(_ path: String, stream: UInt32) async throws {
            var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
            var block = ByteBuffer()
            try encoder.encode(
                headers: [
                    ":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers",
                    "content-type": "application/grpc",
                ], to: &block)
            try await write(type: 1, flags: 4, stream: stream, Array(block.readableBytesView))
        }

        /// Reads until the server ends this many calls, or the connection.
        /// - Returns: the calls that ended.
        @discardableResult
        mutating func ended(_ count: Int = 1) async throws -> Set<UInt32> {
            var buffer = ByteBuffer()
            var ended: Set<UInt32> = []
            while ended.count < count, var piece = try await iterator.next() {
                buffer.writeBuffer(&piece)
                while let head = buffer.getBytes(at: buffer.readerIndex, length: 9) {
                    let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                    guard buffer.readableBytes >= 9 + length else { break }
                    buffer.moveReaderIndex(forwardBy: 9 + length)
                    let stream = head[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                    // RST_STREAM, or END_STREAM in a HEADERS frame.
                    if head[3] == 3 || head[3] == 1 && head[4] & 1 == 1 { ended.insert(stream) }
                }
            }
            return ended
        }

        /// Reads until the server resets a stream.
        /// - Returns: the error code (RFC 9113 section 7); nil if the connection ends first.
        mutating func reset() async throws -> UInt32? {
            var buffer = ByteBuffer()
            while var piece = try await iterator.next() {
                buffer.writeBuffer(&piece)
                while let head = buffer.getBytes(at: buffer.readerIndex, length: 9) {
                    let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                    guard buffer.readableBytes >= 9 + length else { break }
                    buffer.moveReaderIndex(forwardBy: 9)
                    if head[3] == 3 { return buffer.readInteger() }
                    buffer.moveReaderIndex(forwardBy: length)
                }
            }
            return nil
        }
    }

    private static let write = "/google.bytestream.ByteStream/Write"

    /// Whatever comes, the server ends the connection or the call, and answers others.
    @Test(arguments: 0..<10) func frames(kind: Int) async throws {
        try await Setting.run(calls: { $0.stallTimeout = .seconds(2) }) { setting in
            try? await Connection.with(setting.calls.port) { _, connection in
                switch kind {
                case 0: try await connection.write(type: 0, stream: 1, [1, 2, 3])
                case 1: try await connection.write(type: 9, flags: 4, stream: 1, [1, 2, 3])
                case 2: try await connection.write(type: 1, flags: 4, stream: 1, [0xFF, 0xFF, 0xFF])
                case 3: try await connection.write(type: 0, stream: 0, [])
                case 4: try await connection.write(type: 1, flags: 4, stream: 2, length: 1 << 23, [0x88])
                case 5:
                    // A message that is longer than any.
                    try await connection.begin(Self.write, stream: 1)
                    try await connection.write(type: 0, stream: 1, [0, 0xFF, 0xFF, 0xFF, 0xFF, 1])
                case 6:
                    // No protobuf.
                    try await connection.begin(Self.write, stream: 1)
                    try await connection.write(type: 0, flags: 1, stream: 1, [0, 0, 0, 0, 2, 0xFF, 0xFF])
                case 7:
                    // Half a message, and the end.
                    try await connection.begin(Self.write, stream: 1)
                    try await connection.write(type: 0, flags: 1, stream: 1, [0, 0, 0, 1, 0, 5])
                case 8:
                    // Data after the end.
                    try await connection.begin(Self.write, stream: 1)
                    try await connection.write(type: 0, flags: 1, stream: 1, [])
                    try await connection.write(type: 0, stream: 1, [0, 0, 0, 0, 0])
                default:
                    // A message said to be compressed.
                    try await connection.begin(Self.write, stream: 1)
                    try await connection.write(type: 0, stream: 1, [1, 0, 0, 0, 1, 1])
                }
                try await connection.ended()
            }
            try await #expect(setting.missing(of: [named(body(5))]).count == 1)
        }
    }

    /// The client gets the status, and not that its call was cancelled.
    @Test func aMessageThatIsTooLarge() async throws {
        try await Setting.run { setting in
            try await Connection.with(setting.calls.port) { _, connection in
                try await connection.begin(Self.write, stream: 1)
                try await connection.write(type: 0, stream: 1, [0, 0, 0x50, 0, 0] + body(100))
                try await #expect(connection.reset() == 0, "NO_ERROR")
            }
        }
    }

    /// Uploads that begin and never continue hold no more memory than they may.
    @Test func halfOpenUploads() async throws {
        try await Setting.run(calls: {
            $0.stallTimeout = .seconds(600)
            $0.memoryBytes = 8 << 20
            $0.callsPerConnection = 1_000
        }) { setting in
            try await Connection.with(setting.calls.port) { _, connection in
                for number in UInt32(0)..<100 {
                    let stream = number * 2 + 1
                    try await connection.begin(Self.write, stream: stream)
                    // The beginning of a message of 1 MiB.
                    try await connection.write(type: 0, stream: stream, [0, 0, 0x10, 0, 0] + body(100))
                }
                // All but eight have no room for their messages.
                try await #expect(connection.ended(92).count == 92)
            }
            // The room of the eight is free when the server has noticed that the connection is closed.
            try await waitWhile {
                do {
                    try await setting.update([body(1_000)])
                    return false
                } catch let error as RPCError where error.code == .resourceExhausted {
                    return true
                }
            }
        }
    }

    /// A client that asks for much and reads nothing.
    @Test func anAnswerThatIsNotRead() async throws {
        try await Setting.run(calls: { $0.stallTimeout = .seconds(2) }) { setting in
            let bytes = body(2_000_000)
            _ = try await setting.write(upload(bytes), [Array(bytes[..<1_000_000]), Array(bytes[1_000_000...])])
            try await Connection.with(setting.calls.port) { _, connection in
                let request = try ReadRequest.with { $0.resourceName = blob(bytes) }.serializedBytes() as [UInt8]
                for stream in [UInt32(1), 3, 5] {
                    try await connection.begin("/google.bytestream.ByteStream/Read", stream: stream)
                    let message = [0, 0, 0, 0, UInt8(request.count)] + request
                    try await connection.write(type: 0, flags: 1, stream: stream, message)
                }
                // The window of the connection is 64 KiB, and stays so.
                try await #expect(connection.ended(3).count == 3)
            }
            try await #expect(setting.missing(of: [named(bytes)]).isEmpty)
        }
    }

    @Test func aConnectionWithoutACall() async throws {
        try await Setting.run(calls: { $0.firstCallTimeout = .seconds(2) }) { setting in
            try await setting.update([body(1_000)])
            try await Connection.with(setting.calls.port) { _, connection in
                try await #expect(connection.ended().isEmpty, "the server closes the connection")
            }
            try await #expect(setting.missing(of: [named(body(1_000))]).isEmpty)
        }
    }

    /// A few bytes that become many objects.
    @Test func messagesThatAreMoreThanTheySay() async throws {
        try await Setting.run { setting in
            let bomb = Array(repeatElement([0x52, 0] as [UInt8], count: 100_000).joined())
            try await Connection.with(setting.calls.port) { _, connection in
                // An ActionResult (field 3) with 100,000 empty links.
                let message: [UInt8] = [0x1A, 0xC0, 0x9A, 0x0C] + bomb
                try await connection.begin(
                    "/build.bazel.remote.execution.v2.ActionCache/UpdateActionResult", stream: 1)
                let head = withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) }
                let framed: [UInt8] = [0] + head + message
                for start in stride(from: 0, to: framed.count, by: 16_000) {
                    let end = min(framed.count, start + 16_000)
                    let flags: UInt8 = end == framed.count ? 1 : 0
                    try await connection.write(type: 0, flags: flags, stream: 1, Array(framed[start..<end]))
                }
                try await #expect(connection.ended() == [1])
            }
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test func connectionsAreLimited() async throws {
        try await Setting.run(calls: { $0.connections = 3 }) { setting in
            try await setting.update([body(1_000)])
            var channels: [any Channel] = []
            for _ in 0..<10 {
                channels.append(
                    try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                        .connect(host: "127.0.0.1", port: setting.calls.port).get())
            }
            // All but two are closed by the server.
            var open = channels
            try await waitWhile {
                open = open.filter(\.isActive)
                return open.count > 2
            }
            try await #expect(setting.missing(of: [named(body(1_000))]).isEmpty)
            for channel in open { try await channel.close() }
        }
    }

    @Test func anAddressThatIsTaken() async throws {
        try await Setting.run { setting in
            var configuration = GRPCObjectServerConfiguration()
            configuration.port = setting.calls.port
            let error = await #expect(throws: (any Error).self) {
                _ = try await GRPCObjectServer.start(configuration, beside: setting.objects)
            }
            #expect("\(error as Any)".contains("cannotListen"))
            configuration.certificate = .init(certificateFile: "/no/such/file", keyFile: "/no/such/file")
            let other = await #expect(throws: (any Error).self) {
                _ = try await GRPCObjectServer.start(configuration, beside: setting.objects)
            }
            #expect("\(other as Any)".contains("tls") || "\(other as Any)".contains("io"))
        }
    }
}
