import NIOCore
import NIOHPACK

/// A field block of a client, decoded: a request's head, or its trailers.
struct HTTP2Head {
    let stream: Int
    let endsStream: Bool
    /// It says that the stream depends on itself (RFC 7540 section 5.3.1).
    let dependsOnItself: Bool
    let fields: HPACKHeaders
}

/// Puts field blocks together and decodes them (RFC 9113 section 4.3).
struct HTTP2HeadReader {
    private struct Block {
        let stream: Int
        let endsStream: Bool
        let dependsOnItself: Bool
        var bytes: ByteBuffer
        var frames = 1
    }

    /// What a decoded block may have, in bytes, counted as SETTINGS_MAX_HEADER_LIST_SIZE is.
    private let limit: Int
    /// Made for the first block: a connection that is silent needs none.
    private var decoder: HPACKDecoder?
    private var open: Block?

    init(limit: Int) { self.limit = limit }

    /// The stream whose block is not complete: nothing else may come before its end (section 4.3).
    var openStream: Int? { open?.stream }

    /// Bytes of a block that is not complete.
    var heldBytes: Int { open?.bytes.readableBytes ?? 0 }

    /// HEADERS. Nil if CONTINUATION has to follow.
    mutating func begin(_ received: HTTP2Frame) throws(HTTP2Fault) -> HTTP2Head? {
        var frame = received
        try frame.removePadding()
        var dependsOnItself = false
        if frame.flags & HTTP2Frame.Flag.priority != 0 {
            guard let (parent, _) = frame.payload.readMultipleIntegers(as: (UInt32, UInt8).self) else {
                throw .connection(.frameSizeError)
            }
            dependsOnItself = Int(parent & 0x7FFF_FFFF) == frame.stream
        }
        let block = Block(
            stream: frame.stream, endsStream: frame.endsStream, dependsOnItself: dependsOnItself, bytes: frame.payload)
        if frame.flags & HTTP2Frame.Flag.endHeaders != 0 { return try decode(block) }
        open = block
        return nil
    }

    /// CONTINUATION. Nil if another has to follow.
    mutating func resume(_ frame: HTTP2Frame) throws(HTTP2Fault) -> HTTP2Head? {
        guard var block = open, block.stream == frame.stream else { throw .connection(.protocolError) }
        open = nil
        block.bytes.writeImmutableBuffer(frame.payload)
        block.frames += 1
        // With room for clients that do not fill their frames.
        guard block.bytes.readableBytes <= limit, block.frames <= max(5, 2 * limit / HTTP2Frame.longestPayload) else {
            throw .connection(.enhanceYourCalm)
        }
        if frame.flags & HTTP2Frame.Flag.endHeaders != 0 { return try decode(block) }
        open = block
        return nil
    }

    private mutating func decode(_ block: Block) throws(HTTP2Fault) -> HTTP2Head {
        if decoder == nil {
            decoder = HPACKDecoder(
                allocator: ByteBufferAllocator(), maxDynamicTableSize: HPACKDecoder.maxDynamicTableSize,
                maxHeaderListSize: limit)
        }
        var bytes = block.bytes
        do {
            let fields = try decoder?.decodeHeaders(from: &bytes) ?? HPACKHeaders()
            return HTTP2Head(
                stream: block.stream, endsStream: block.endsStream, dependsOnItself: block.dependsOnItself,
                fields: fields)
        } catch {
            throw .connection(error is NIOHPACKErrors.MaxHeaderListSizeViolation ? .enhanceYourCalm : .compressionError)
        }
    }
}
