import HTTPTypes

@testable import HTTPWire

/// Bytes of a text in which each character is one byte.
func bytes(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

/// Scans and parses a whole request head.
func request(_ text: String, limits: HeadLimits = HeadLimits()) throws(WireError) -> RequestHead {
    try request(bytes(text), limits: limits)
}

func request(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) throws(WireError) -> RequestHead {
    try bytes.withBytes { (raw) throws(WireError) in
        var scanner = HeadScanner(limits: limits, isRequest: true)
        guard let head = try scanner.scan(raw) else { throw .incomplete }
        return try RequestHead.parse(UnsafeRawBufferPointer(rebasing: raw[head]), limits: limits)
    }
}

/// Scans and parses a whole response head.
func response(
    _ text: String, answering method: HTTPRequest.Method = .get, limits: HeadLimits = HeadLimits()
) throws(WireError) -> ResponseHead {
    try response(bytes(text), answering: method, limits: limits)
}

func response(
    _ bytes: [UInt8], answering method: HTTPRequest.Method = .get, limits: HeadLimits = HeadLimits()
) throws(WireError) -> ResponseHead {
    try bytes.withBytes { (raw) throws(WireError) in
        var scanner = HeadScanner(limits: limits, isRequest: false)
        guard let head = try scanner.scan(raw) else { throw .incomplete }
        return try ResponseHead.parse(UnsafeRawBufferPointer(rebasing: raw[head]), answering: method, limits: limits)
    }
}

/// What a decoder makes of bytes that arrive in pieces.
struct Decoded: Hashable {
    var content: [UInt8] = []
    var error: WireError?
    var ended = false
    var isCompleteAtEOF = false
    /// Bytes that were read.
    var consumed = 0
}

func decode(_ framing: BodyFraming, _ pieces: [[UInt8]]) -> Decoded {
    var decoder = BodyDecoder(framing)
    var result = Decoded()
    pieces: for piece in pieces {
        var position = 0
        do throws(WireError) {
            try piece.withBytes { (raw) throws(WireError) in
                loop: while true {
                    switch try decoder.next(raw, at: &position) {
                    case .payload(let range): result.content += raw[range]
                    case .needsMore:
                        precondition(position == raw.count, "bytes are left")
                        break loop
                    case .end:
                        result.ended = true
                        break loop
                    }
                }
            }
        } catch {
            result.error = error
        }
        result.consumed += position
        if result.ended || result.error != nil { break }
    }
    // A piece that ends with the message needs no further call to show it.
    var nothing = 0
    if result.error == nil, (try? decoder.next(UnsafeRawBufferPointer(start: nil, count: 0), at: &nothing)) == .end {
        result.ended = true
    }
    result.isCompleteAtEOF = decoder.isCompleteAtEOF
    return result
}

func decode(_ framing: BodyFraming, _ text: String) -> Decoded { decode(framing, [bytes(text)]) }

extension HTTPField {
    /// The value, byte for byte.
    var valueBytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }
}
