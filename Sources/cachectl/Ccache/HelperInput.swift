import NIOCore

/// Bytes of a client, in the pieces in which they are wanted.
struct HelperInput {
    /// The client left in the middle of a request.
    struct Incomplete: Error {}

    private var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private var buffer = ByteBuffer()

    init(_ iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator) { self.iterator = iterator }

    /// The next byte; nil at the end.
    mutating func byte() async throws -> UInt8? {
        while buffer.readableBytes == 0 {
            guard let more = try await iterator.next() else { return nil }
            buffer = more
        }
        return buffer.readInteger()
    }

    /// - Throws: ``Incomplete``.
    mutating func bytes(_ count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { bytes += try await piece(atMost: count - bytes.count) }
        return bytes
    }

    /// Some bytes, one at least.
    /// - Throws: ``Incomplete``.
    mutating func piece(atMost count: Int) async throws -> [UInt8] {
        guard count > 0 else { return [] }
        while buffer.readableBytes == 0 {
            guard let more = try await iterator.next() else { throw Incomplete() }
            buffer = more
        }
        return buffer.readBytes(length: min(count, buffer.readableBytes)) ?? []
    }
}
