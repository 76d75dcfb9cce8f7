import NIOCore

/// A frame of a client (RFC 9113 section 4.1), complete.
struct HTTP2Frame {
    enum Kind: UInt8 {
        case data
        case headers
        case priority
        case reset
        case settings
        case pushPromise
        case ping
        case goAway
        case windowUpdate
        case continuation
    }

    /// The bits that frames have in common.
    enum Flag {
        static let endStream: UInt8 = 0x1
        static let acknowledgement: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
        static let priority: UInt8 = 0x20
    }

    /// Of the head, in bytes.
    static let headLength = 9
    /// The longest payload that is taken and sent, in bytes: what every peer takes (section 6.5.2).
    static let longestPayload = 16_384

    /// Nil for a type that is not known, which is passed over (section 5.5).
    let kind: Kind?
    let flags: UInt8
    /// 0 for the connection.
    let stream: Int
    var payload: ByteBuffer

    var isAcknowledgement: Bool { flags & Flag.acknowledgement != 0 }
    var endsStream: Bool { flags & Flag.endStream != 0 }

    /// Removes the padding of DATA and HEADERS (sections 6.1 and 6.2).
    mutating func removePadding() throws(HTTP2Fault) {
        guard flags & Flag.padded != 0 else { return }
        guard let count = payload.readInteger(as: UInt8.self) else { throw .connection(.frameSizeError) }
        guard Int(count) <= payload.readableBytes,
            let rest = payload.readSlice(length: payload.readableBytes - Int(count))
        else { throw .connection(.protocolError) }
        payload = rest
    }
}

/// Finds the frames of a client, in whatever pieces the bytes come.
struct HTTP2FrameReader {
    /// DATA that has not come completely.
    private struct OpenData {
        let stream: Int
        let flags: UInt8
        var left: Int
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private var bytes = ByteBuffer()
    /// The client's preface has come (section 3.4).
    private var hasBegun = false
    private var openData: OpenData?

    /// Whether a part of a frame has come that is not handed over.
    var isInside: Bool { bytes.readableBytes > 0 }

    /// Keeps bytes that came.
    mutating func keep(_ new: inout ByteBuffer) {
        if bytes.readableBytes == 0 { return bytes = new }
        bytes.discardReadBytes()
        bytes.writeBuffer(&new)
    }

    /// Lets go of the room when everything in it was read.
    mutating func release() {
        if bytes.readableBytes == 0 { bytes = ByteBuffer() }
    }

    /// The next frame; nil if it is not complete. Of DATA without padding each part is a frame of its own, as it comes:
    /// a client may be slow.
    mutating func next() throws(HTTP2Fault) -> HTTP2Frame? {
        guard try readPreface() else { return nil }
        if let openData { return nextPart(openData) }
        let start = bytes.readerIndex
        guard let lengthAndType = bytes.getInteger(at: start, as: UInt32.self),
            let flags = bytes.getInteger(at: start + 4, as: UInt8.self),
            let number = bytes.getInteger(at: start + 5, as: UInt32.self)
        else { return nil }
        let length = Int(lengthAndType >> 8)
        let kind = HTTP2Frame.Kind(rawValue: UInt8(lengthAndType & 0xFF))
        let stream = Int(number & 0x7FFF_FFFF)
        guard length <= HTTP2Frame.longestPayload else { throw .connection(.frameSizeError) }
        if let payload = bytes.getSlice(at: start + HTTP2Frame.headLength, length: length) {
            bytes.moveReaderIndex(forwardBy: HTTP2Frame.headLength + length)
            return HTTP2Frame(kind: kind, flags: flags, stream: stream, payload: payload)
        }
        guard kind == .data, flags & HTTP2Frame.Flag.padded == 0 else { return nil }
        bytes.moveReaderIndex(forwardBy: HTTP2Frame.headLength)
        return nextPart(OpenData(stream: stream, flags: flags, left: length))
    }

    private mutating func nextPart(_ data: OpenData) -> HTTP2Frame? {
        let count = min(data.left, bytes.readableBytes)
        openData = data
        guard count > 0, let payload = bytes.readSlice(length: count) else { return nil }
        let left = data.left - count
        openData = left > 0 ? OpenData(stream: data.stream, flags: data.flags, left: left) : nil
        return HTTP2Frame(kind: .data, flags: left > 0 ? 0 : data.flags, stream: data.stream, payload: payload)
    }

    private mutating func readPreface() throws(HTTP2Fault) -> Bool {
        guard !hasBegun else { return true }
        let count = min(bytes.readableBytes, Self.preface.count)
        guard bytes.readableBytesView.prefix(count).elementsEqual(Self.preface.prefix(count)) else {
            throw .connection(.protocolError)
        }
        guard count == Self.preface.count else { return false }
        bytes.moveReaderIndex(forwardBy: count)
        hasBegun = true
        return true
    }
}
