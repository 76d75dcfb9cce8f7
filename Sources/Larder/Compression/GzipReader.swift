import CZlib

/// What is wrong with a stored body that cannot be decompressed.
struct GzipDamage: Error, CustomStringConvertible {
    let description: String
}

/// Decompresses a gzip member from its start. The length that the body is to have bounds what it gives, whatever the
/// member says, and the member has to end with it.
final class GzipReader: @unchecked Sendable {
    /// Reads the next part of the member into a buffer; returns how many bytes, 0 at its end.
    typealias Source = (UnsafeMutableRawBufferPointer) throws -> Int

    // SAFETY: used by one thread at a time: it is made in a call, or is the state of a lock.
    // SAFETY: zlib keeps the address of its stream, so it has a place of its own; freed in `deinit`.
    private let stream: UnsafeMutablePointer<z_stream>
    private let input: UnsafeMutableRawBufferPointer
    private static let inputLength = 32 << 10
    /// Bytes of the body that it has given.
    private(set) var position = 0
    private var isOver = false

    /// - Throws: `io` if zlib gets no memory.
    init() throws {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        input = .allocate(byteCount: Self.inputLength, alignment: 16)
        let code = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard code == Z_OK else { throw Self.noMemory(code) }
    }

    deinit {
        // Does nothing to a stream that could not be initialised.
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
        input.deallocate()
    }

    /// Fills a buffer with the next bytes of the body.
    /// - Returns: how many there are: fewer than asked for only at the end.
    func read(into output: UnsafeMutableRawBufferPointer, from source: Source) throws -> Int {
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        while stream.pointee.avail_out > 0, !isOver { try step(from: source) }
        let count = output.count - Int(stream.pointee.avail_out)
        position += count
        return count
    }

    /// Throws unless the member ends here, and nothing is behind it.
    func finish(from source: Source) throws {
        var rest: UInt8 = 0
        let count = try withUnsafeMutableBytes(of: &rest) { try read(into: $0, from: source) }
        guard count == 0, isOver else { throw GzipDamage(description: "it is longer than the body") }
        guard stream.pointee.avail_in == 0, try source(input) == 0 else {
            throw GzipDamage(description: "bytes follow it")
        }
    }

    /// This is not damage.
    private static func noMemory(_ code: Int32) -> LarderError {
        LarderError(.io, "zlib gets no memory to decompress a body (\(code)): try again")
    }

    private func step(from source: Source) throws {
        if stream.pointee.avail_in == 0 {
            let count = try source(input)
            guard count > 0 else { throw GzipDamage(description: "it is cut off") }
            stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(count)
        }
        switch inflate(stream, Z_NO_FLUSH) {
        case Z_OK: break
        case Z_STREAM_END: isOver = true
        case let code where code == Z_MEM_ERROR: throw Self.noMemory(code)
        case let code:
            throw GzipDamage(description: stream.pointee.msg.map { String(cString: $0) } ?? "zlib's error \(code)")
        }
    }
}

extension GzipReader {
    /// The body of a member that is in memory.
    /// - Parameter length: of the body.
    static func body(of member: UnsafeRawBufferPointer, length: Int) throws -> [UInt8] {
        // No member makes more than 1,032 bytes of one (zlib's technical details): a damaged length must not become an
        // allocation.
        guard length >= 0, length <= (member.count + 1) * 1032 else {
            throw GzipDamage(description: "it is too short for the length of the body")
        }
        let reader = try GzipReader()
        var rest = member[...]
        let source: Source = { buffer in
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(buffer.count))
            buffer.copyMemory(from: part)
            rest = rest.dropFirst(part.count)
            return part.count
        }
        let body = try [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            count = try reader.read(
                into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<length]),
                from: source)
        }
        guard body.count == length else { throw GzipDamage(description: "it is shorter than the body") }
        try reader.finish(from: source)
        return body
    }
}
