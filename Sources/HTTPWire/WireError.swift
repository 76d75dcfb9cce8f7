/// Which rule of HTTP/1.1's syntax a message breaks.
///
/// A message with any of these is not to be acted on, and its connection is to be closed: where it ends is not certain.
package enum WireError: String, Error, Hashable, CaseIterable {
    // MARK: Lines

    case bareLineFeed = "a line ends with LF alone"
    case bareCarriageReturn = "CR without LF"
    case incomplete = "the message ends early"
    case trailingBytes = "bytes after the end of the head"

    // MARK: Start line

    case invalidMethod = "the method is not a token"
    case invalidTarget = "the request target has none of the four forms"
    case invalidVersion = "the start line has no HTTP version"
    case unsupportedVersion = "a version other than HTTP/1.0 and HTTP/1.1"
    case invalidStatus = "the status is not three digits from 100"
    case requestLineTooLong = "the request line is over the limit"

    // MARK: Fields

    case leadingWhitespace = "white space before the first field"
    case lineFolding = "a field line that continues the one before"
    case invalidFieldName = "a field name that is not a token"
    case whitespaceBeforeColon = "white space between field name and colon"
    case controlCharacter = "a control character"
    case headTooLarge = "the head is over the limit"
    case tooManyFields = "more fields than the limit"
    case missingHost = "no Host"
    case repeatedHost = "more than one Host"
    case invalidHost = "the host has no valid form"

    // MARK: Framing

    case invalidContentLength = "Content-Length is not one number"
    case conflictingLengths = "Content-Length and Transfer-Encoding together"
    case invalidTransferEncoding = "Transfer-Encoding does not end the message with one 'chunked'"
    case transferEncodingInHTTP10 = "Transfer-Encoding in HTTP/1.0"
    case unsupportedTransferCoding = "a transfer coding other than chunked"
    case invalidChunkSize = "a chunk's size is not a number in hexadecimal digits"
    case invalidChunkExtension = "a chunk extension is neither a name nor a name with a value"
    case chunkExtensionsTooLong = "chunk extensions over the limit"
    case invalidChunkEnd = "a chunk does not end with CR LF"
    case trailersTooLarge = "trailer fields over the limit"

    // MARK: Writing

    case unwritable = "a part of the message cannot be written"

    /// The status code that answers a request with this error.
    package var status: Int {
        switch self {
        case .requestLineTooLong: 414
        case .headTooLarge, .tooManyFields, .trailersTooLarge: 431
        case .unsupportedTransferCoding: 501
        case .unsupportedVersion: 505
        default: 400
        }
    }
}

extension WireError: CustomStringConvertible {
    package var description: String { rawValue }
}
