/// Why a stream or a connection ends (RFC 9113 section 7).
enum HTTP2Code: UInt32 {
    case noError
    case protocolError
    case internalError
    case flowControlError
    case settingsTimeout
    case streamClosed
    case frameSizeError
    case refusedStream
    case cancel
    case compressionError
    case connectError
    case enhanceYourCalm
}

/// What a client did against the protocol: it ends one stream, or the connection (RFC 9113 section 5.4).
enum HTTP2Fault: Error {
    case stream(Int, HTTP2Code)
    case connection(HTTP2Code)
}
