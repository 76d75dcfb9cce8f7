import CZlib

/// Compresses bodies.
enum GzipWriter {
    /// Between zlib's fastest and its default (`deflateInit2` in zlib.h): see decision 141.
    private static let level: Int32 = 4
    /// 15: the largest window. 16: a gzip member.
    private static let windowBits: Int32 = 15 + 16
    private static let sampledLength = 256 << 10
    private static let sample = 64 << 10

    /// The body as a gzip member, if that saves at least an eighth; else nil.
    static func compressed(_ body: UnsafeRawBufferPointer) -> [UInt8]? {
        if body.count >= sampledLength, member(UnsafeRawBufferPointer(rebasing: body[..<sample])) == nil { return nil }
        return member(body)
    }

    private static func member(_ body: UnsafeRawBufferPointer) -> [UInt8]? {
        var stream = z_stream()
        let code = deflateInit2_(
            &stream, level, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard code == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        let most = body.count - (body.count + 7) / 8
        var isComplete = false
        let member = [UInt8](unsafeUninitializedCapacity: most) { output, count in
            // zlib does not change its input.
            stream.next_in = UnsafeMutablePointer(
                mutating: body.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.avail_in = UInt32(body.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(most)
            isComplete = deflate(&stream, Z_FINISH) == Z_STREAM_END
            count = isComplete ? most - Int(stream.avail_out) : 0
        }
        return isComplete ? member : nil
    }
}
