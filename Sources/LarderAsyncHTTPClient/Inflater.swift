import CZlib
import NIOCore
import NIOHTTPCompression

/// Decompresses gzip and zlib data (RFC 1952, RFC 1950) as it comes, with the errors of NIO's decompressor: the one
/// that AsyncHTTPClient uses, which works on a connection only.
final class Inflater {
    /// The most that one call gives, in bytes.
    private static let pieceBytes = 64 << 10
    /// 15: the largest window. 32: the header says whether it is gzip or zlib (`inflateInit2` in zlib.h).
    private static let windowBits: Int32 = 15 + 32

    // SAFETY: zlib keeps the address of its stream, so it has a place of its own; freed in deinit.
    private let stream: UnsafeMutablePointer<z_stream>
    private let limit: ClientSettings.GrowthLimit
    private var input: [UInt8] = []
    private var position = 0
    private var received = 0
    private var written = 0
    private var isComplete = false
    private var hasMore = false

    init(_ limit: ClientSettings.GrowthLimit) throws {
        self.limit = limit
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let code = inflateInit2_(stream, Self.windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard code == Z_OK else { throw NIOHTTPDecompression.DecompressionError.initializationError(Int(code)) }
    }

    deinit {
        // Does nothing to a stream that could not be initialised.
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    /// Takes the next compressed piece. Call ``next()`` until it gives nil first.
    func take(_ piece: [UInt8]) {
        input = piece
        position = 0
        received += piece.count
    }

    /// The next decompressed piece; nil when all that was taken is used up.
    func next() throws -> ByteBuffer? {
        while !isComplete, position < input.count || hasMore {
            var output = ByteBuffer()
            let code = inflate(into: &output)
            guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
                throw NIOHTTPDecompression.DecompressionError.inflationError(Int(code))
            }
            isComplete = code == Z_STREAM_END
            if limit.isExceeded(compressed: received, decompressed: written) {
                throw NIOHTTPDecompression.DecompressionError.limit
            }
            if output.readableBytes > 0 { return output }
            if code == Z_BUF_ERROR { break }
        }
        guard !isComplete || position == input.count else {
            throw NIOHTTPDecompression.ExtraDecompressionError.invalidTrailingData
        }
        return nil
    }

    /// Call at the end of the compressed data: throws if it ended too early. No data at all is not an error: the answer
    /// to HEAD names a coding and has no content.
    func finish() throws {
        guard isComplete || received == 0 else { throw NIOHTTPDecompression.ExtraDecompressionError.truncatedData }
    }

    private func inflate(into output: inout ByteBuffer) -> Int32 {
        var code = Z_OK
        output.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.pieceBytes) { room in
            let capacity = min(room.count, Self.pieceBytes)
            input.withUnsafeMutableBufferPointer { input in
                stream.pointee.next_in = input.baseAddress.map { $0 + position }
                stream.pointee.avail_in = UInt32(input.count - position)
                stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(capacity)
                code = CZlib.inflate(stream, Z_NO_FLUSH)
                position = input.count - Int(stream.pointee.avail_in)
            }
            let count = capacity - Int(stream.pointee.avail_out)
            // zlib must not see memory again that is gone after this call.
            stream.pointee.next_in = nil
            stream.pointee.avail_in = 0
            stream.pointee.next_out = nil
            stream.pointee.avail_out = 0
            written += count
            hasMore = count == capacity
            return count
        }
        return code
    }
}
