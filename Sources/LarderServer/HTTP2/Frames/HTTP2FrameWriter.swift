import NIOCore

/// Frames that go to the client (RFC 9113 section 6).
extension ByteBuffer {
    mutating func writeFrameHead(_ kind: HTTP2Frame.Kind, flags: UInt8 = 0, stream: Int, length: Int) {
        writeMultipleIntegers(UInt32(length) << 8 | UInt32(kind.rawValue), flags, UInt32(stream))
    }

    /// HEADERS, and CONTINUATION where the block does not fit.
    /// - Parameter block: writes the field block.
    mutating func writeHeaders(stream: Int, endsStream: Bool, _ block: (inout ByteBuffer) -> Void) {
        let start = writerIndex
        let flags = endsStream ? HTTP2Frame.Flag.endStream : 0
        writeFrameHead(.headers, flags: flags | HTTP2Frame.Flag.endHeaders, stream: stream, length: 0)
        block(&self)
        let length = writerIndex - start - HTTP2Frame.headLength
        guard length > HTTP2Frame.longestPayload else {
            setInteger(UInt32(length) << 8 | UInt32(HTTP2Frame.Kind.headers.rawValue), at: start)
            return
        }
        var rest = getSlice(at: start + HTTP2Frame.headLength, length: length) ?? ByteBuffer()
        moveWriterIndex(to: start)
        var kind = HTTP2Frame.Kind.headers
        while var piece = rest.readSlice(length: min(rest.readableBytes, HTTP2Frame.longestPayload)) {
            let last = rest.readableBytes == 0 ? HTTP2Frame.Flag.endHeaders : 0
            writeFrameHead(
                kind, flags: (kind == .headers ? flags : 0) | last, stream: stream, length: piece.readableBytes)
            writeBuffer(&piece)
            kind = .continuation
            if last != 0 { break }
        }
    }

    /// DATA, in as many frames as it takes: an empty one for no bytes.
    mutating func writeData(_ bytes: UnsafeRawBufferPointer, stream: Int, endsStream: Bool) {
        var start = 0
        repeat {
            let end = min(start + HTTP2Frame.longestPayload, bytes.count)
            let flags = endsStream && end == bytes.count ? HTTP2Frame.Flag.endStream : 0
            writeFrameHead(.data, flags: flags, stream: stream, length: end - start)
            writeBytes(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            start = end
        } while start < bytes.count
    }

    mutating func writeReset(stream: Int, _ code: HTTP2Code) {
        writeFrameHead(.reset, stream: stream, length: 4)
        writeInteger(code.rawValue)
    }

    /// - Parameter values: identifiers (section 6.5.2) and values.
    mutating func writeSettings(_ values: [(UInt16, UInt32)]) {
        writeFrameHead(.settings, stream: 0, length: 6 * values.count)
        for (identifier, value) in values { writeMultipleIntegers(identifier, value) }
    }

    mutating func writeSettingsAcknowledgement() {
        writeFrameHead(.settings, flags: HTTP2Frame.Flag.acknowledgement, stream: 0, length: 0)
    }

    mutating func writePingAcknowledgement(_ payload: ByteBuffer) {
        writeFrameHead(.ping, flags: HTTP2Frame.Flag.acknowledgement, stream: 0, length: payload.readableBytes)
        writeImmutableBuffer(payload)
    }

    mutating func writeWindowUpdate(stream: Int, by count: Int) {
        writeFrameHead(.windowUpdate, stream: stream, length: 4)
        writeInteger(UInt32(count))
    }

    mutating func writeGoAway(lastStream: Int, _ code: HTTP2Code) {
        writeFrameHead(.goAway, stream: 0, length: 8)
        writeMultipleIntegers(UInt32(lastStream), code.rawValue)
    }
}
