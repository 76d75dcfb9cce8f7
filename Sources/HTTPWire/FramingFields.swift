/// How the end of a message's content is found (RFC 9112 section 6).
package enum BodyFraming: Hashable, Sendable {
    /// The message ends with its head.
    case none
    /// `Content-Length`.
    case length(Int64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// A response that the end of the connection ends.
    case untilClose
    /// A successful response to CONNECT: what follows is not a message.
    case tunnel
}

/// What the fields say of a message's end and of its connection, before it is known what the message is.
struct FramingFields {
    /// The list of transfer codings.
    struct Codings {
        var isPresent = false
        var count = 0
        var chunked = 0
        var identity = 0
        var endsWithChunked = false
        /// A list element that is empty, has parameters or is not a token.
        var isMalformed = false
        var hasEmptyElement = false
    }

    var codings = Codings()
    var contentLength: Int64?
    /// More than one value, all of them the same number.
    var isLengthRepeated = false
    /// A value that is not a number, or numbers that differ.
    var isLengthInvalid = false
    var close = false
    var keepAlive = false
    var expectsContinue = false

    init() {}

    /// Takes in one line. A folded one (in a response) is refused: all parsers have to read these fields in the same
    /// way.
    mutating func add(_ line: FieldLine, in bytes: UnsafeRawBufferPointer) throws(WireError) {
        switch line.kind {
        case .other, .host: return
        case _ where line.isFolded: throw .lineFolding
        case .contentLength: addLength(bytes, line.value)
        case .transferEncoding: addCodings(bytes, line.value)
        case .connection:
            Self.forEachElement(bytes, line.value) { element in
                if bytes.spells("close", at: element) { close = true }
                if bytes.spells("keep-alive", at: element) { keepAlive = true }
            }
        case .expect: expectsContinue = expectsContinue || bytes.spells("100-continue", at: line.value)
        }
    }

    private mutating func addLength(_ bytes: UnsafeRawBufferPointer, _ value: Range<Int>) {
        Self.forEachElement(bytes, value) { element in
            guard let number = Self.number(bytes, element), contentLength == nil || contentLength == number else {
                isLengthInvalid = true
                return
            }
            if contentLength != nil { isLengthRepeated = true }
            contentLength = number
        }
    }

    /// RFC 9112 section 6.2: "a recipient MUST anticipate potentially large decimal numerals and prevent parsing errors
    /// due to integer conversion overflows".
    static func number(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int64? {
        guard !range.isEmpty else { return nil }
        var number: Int64 = 0
        for index in range {
            guard bytes[index].isDigit else { return nil }
            let (tens, overTens) = number.multipliedReportingOverflow(by: 10)
            let (sum, over) = tens.addingReportingOverflow(Int64(bytes[index] &- 0x30))
            if overTens || over { return nil }
            number = sum
        }
        return number
    }

    private mutating func addCodings(_ bytes: UnsafeRawBufferPointer, _ value: Range<Int>) {
        codings.isPresent = true
        Self.forEachElement(bytes, value) { element in
            guard !element.isEmpty else {
                codings.hasEmptyElement = true
                return
            }
            codings.count += 1
            codings.endsWithChunked = bytes.spells("chunked", at: element)
            if codings.endsWithChunked { codings.chunked += 1 }
            if bytes.spells("identity", at: element) { codings.identity += 1 }
            if !element.allSatisfy({ bytes[$0].isTokenCharacter }) { codings.isMalformed = true }
        }
    }

    /// The elements of a list (RFC 9110 section 5.6.1), empty ones included. Quoted strings are not known here: no
    /// field of this file has them.
    @inline(__always) private static func forEachElement(
        _ bytes: UnsafeRawBufferPointer, _ value: Range<Int>, _ body: (Range<Int>) -> Void
    ) {
        var start = value.lowerBound
        for index in value where bytes[index] == Byte.comma {
            body(bytes.trimmed(start..<index))
            start = index + 1
        }
        body(bytes.trimmed(start..<value.upperBound))
    }
}

extension FramingFields {
    /// RFC 9112 section 6.3 for a request, as strict as it allows: whatever two recipients could read in two ways is
    /// refused.
    func requestFraming(version: HTTPVersion) throws(WireError) -> BodyFraming {
        guard codings.isPresent else {
            if isLengthInvalid || isLengthRepeated { throw .invalidContentLength }
            // Zero is kept: such a request says that it has content, of no bytes.
            return contentLength.map { .length($0) } ?? .none
        }
        if contentLength != nil || isLengthInvalid { throw .conflictingLengths }
        if version == .http10 { throw .transferEncodingInHTTP10 }
        if codings.isMalformed || codings.hasEmptyElement || !codings.endsWithChunked || codings.chunked > 1 {
            throw .invalidTransferEncoding
        }
        if codings.count > 1 { throw .unsupportedTransferCoding }
        return .chunked
    }

    /// RFC 9112 section 6.3 for a response that may have content.
    func responseFraming(version: HTTPVersion) throws(WireError) -> BodyFraming {
        guard codings.isPresent else {
            if isLengthInvalid { throw .invalidContentLength }
            return contentLength.map { .length($0) } ?? .untilClose
        }
        if contentLength != nil || isLengthInvalid { throw .conflictingLengths }
        if version == .http10 { throw .transferEncodingInHTTP10 }
        if codings.isMalformed || codings.count == 0 || codings.chunked > 1 { throw .invalidTransferEncoding }
        if codings.chunked == 1, !codings.endsWithChunked { throw .invalidTransferEncoding }
        // 'identity', of RFC 2616, leaves the content as it is. Any other coding would have to be taken off.
        if codings.chunked + codings.identity < codings.count { throw .unsupportedTransferCoding }
        return codings.endsWithChunked ? .chunked : .untilClose
    }
}
