import HTTPTypes
import Testing

@testable import HTTPWire

/// Heads that two recipients could end at different bytes.
@Suite struct SmugglingTests {
    /// Framing fields of a request, and what they are refused for; nil for those that are read.
    struct Row: CustomTestStringConvertible, Sendable {
        let fields: String
        let error: WireError?
        let framing: BodyFraming?
        let version: String
        init(_ fields: String, _ error: WireError, version: String = "HTTP/1.1") {
            self.fields = fields
            self.error = error
            framing = nil
            self.version = version
        }
        init(_ fields: String, is framing: BodyFraming, version: String = "HTTP/1.1") {
            self.fields = fields
            error = nil
            self.framing = framing
            self.version = version
        }
        var testDescription: String { "\(version) \(fields.debugDescription)" }
    }

    static let requests: [Row] = [
        // RFC 9112 6.3 rule 5, and RFC 9110 8.6: one number, of digits.
        Row("Content-Length: 5", is: .length(5)),
        Row("Content-Length: 0", is: .length(0)),
        Row("Content-Length: 9223372036854775807", is: .length(.max)),
        Row("Content-Length: 9223372036854775808", .invalidContentLength),
        Row("Content-Length: 18446744073709551621", .invalidContentLength),
        Row("Content-Length: +5", .invalidContentLength),
        Row("Content-Length: -5", .invalidContentLength),
        Row("Content-Length: 0x5", .invalidContentLength),
        Row("Content-Length: 5.0", .invalidContentLength),
        Row("Content-Length: 5 5", .invalidContentLength),
        Row("Content-Length:", .invalidContentLength),
        Row("Content-Length: ,", .invalidContentLength),
        Row("Content-Length: \u{b2}", .invalidContentLength),
        Row("Content-Length: 5\r\nContent-Length: 6", .invalidContentLength),
        Row("Content-Length: 5, 6", .invalidContentLength),
        // The same number twice may be read as one. It is refused in a request.
        Row("Content-Length: 5\r\ncontent-length: 5", .invalidContentLength),
        Row("Content-Length: 5, 5", .invalidContentLength),
        Row("Content-Length: 5,", .invalidContentLength),
        // 6.1: "A server MAY reject a request that contains both".
        Row("Content-Length: 5\r\nTransfer-Encoding: chunked", .conflictingLengths),
        Row("Transfer-Encoding: chunked\r\nContent-Length: 5", .conflictingLengths),
        Row("Transfer-Encoding: chunked\r\nContent-Length: x", .conflictingLengths),
        Row("Transfer-Encoding: x\r\nContent-Length: 0", .conflictingLengths),
        // 6.1: a server that receives it in HTTP/1.0 has to take the framing as faulty.
        Row("Transfer-Encoding: chunked", .transferEncodingInHTTP10, version: "HTTP/1.0"),
        Row("Content-Length: 5", is: .length(5), version: "HTTP/1.0"),
        // 6.3 rule 4: the last coding is chunked, once; 7: no parameters.
        Row("Transfer-Encoding: chunked", is: .chunked),
        Row("Transfer-Encoding: CHUNKED", is: .chunked),
        Row("Transfer-Encoding:\tchunked\t", is: .chunked),
        Row("Transfer-Encoding: chunked, chunked", .invalidTransferEncoding),
        Row("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .invalidTransferEncoding),
        Row("Transfer-Encoding: chunked, identity", .invalidTransferEncoding),
        Row("Transfer-Encoding: identity", .invalidTransferEncoding),
        Row("Transfer-Encoding: gzip", .invalidTransferEncoding),
        Row("Transfer-Encoding: xchunked", .invalidTransferEncoding),
        Row("Transfer-Encoding: chunked;q=1", .invalidTransferEncoding),
        Row("Transfer-Encoding: \"chunked\"", .invalidTransferEncoding),
        Row("Transfer-Encoding: chun ked", .invalidTransferEncoding),
        Row("Transfer-Encoding: \u{b}chunked", .controlCharacter),
        Row("Transfer-Encoding: , chunked", .invalidTransferEncoding),
        Row("Transfer-Encoding: chunked,", .invalidTransferEncoding),
        Row("Transfer-Encoding:", .invalidTransferEncoding),
        Row("Transfer-Encoding: gzip, chunked", .unsupportedTransferCoding),
        Row("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", .unsupportedTransferCoding),
        Row("Transfer-Encoding: identity, chunked", .unsupportedTransferCoding),
        Row("Transfer-Encoding : chunked", .whitespaceBeforeColon),
        Row("Transfer-Encoding\u{0}: chunked", .invalidFieldName),
        Row("X: y\r\n Transfer-Encoding: chunked", .lineFolding),
        Row("X: y\rTransfer-Encoding: chunked", .bareCarriageReturn),
        Row("X: y\nTransfer-Encoding: chunked", .bareLineFeed),
        // 6.3 rule 7.
        Row("X: y", is: .none),
        // Names that only look alike are other fields.
        Row("Content_Length: 5", is: .none),
        Row("Transfer_Encoding: chunked", is: .none),
    ]

    @Test(arguments: requests) func requestFraming(_ row: Row) throws {
        let head = "POST / \(row.version)\r\nHost: a\r\n\(row.fields)\r\n\r\n"
        if let error = row.error {
            #expect(throws: error) { try request(head) }
        } else {
            #expect(try request(head).framing == row.framing)
        }
    }

    static let responses: [Row] = [
        Row("X: y", is: .untilClose),
        Row("Content-Length: 5", is: .length(5)),
        // Rule 5: "a comma-separated list [...] all values in the list are valid and the same".
        Row("Content-Length: 5, 5", is: .length(5)),
        Row("Content-Length: 5\r\nContent-Length: 5", is: .length(5)),
        Row("Content-Length: 5, 6", .invalidContentLength),
        Row("Content-Length: 5\r\nContent-Length: 6", .invalidContentLength),
        Row("Content-Length: 5,", .invalidContentLength),
        Row("Content-Length: -1", .invalidContentLength),
        Row("Content-Length: 9223372036854775808", .invalidContentLength),
        Row("Content-Length:", .invalidContentLength),
        // Rule 3 lets a proxy choose: "ought to be handled as an error".
        Row("Content-Length: 5\r\nTransfer-Encoding: chunked", .conflictingLengths),
        Row("Transfer-Encoding: chunked", .transferEncodingInHTTP10, version: "HTTP/1.0"),
        Row("Content-Length: 5", is: .length(5), version: "HTTP/1.0"),
        Row("X: y", is: .untilClose, version: "HTTP/1.0"),
        Row("Transfer-Encoding: chunked", is: .chunked),
        Row("Transfer-Encoding: Chunked", is: .chunked, version: "HTTP/1.2"),
        Row("Transfer-Encoding: , chunked", is: .chunked),
        // Rule 4: not chunked at the end, so until close; 'identity' is a coding that changes nothing.
        Row("Transfer-Encoding: identity", is: .untilClose),
        Row("Transfer-Encoding: identity, chunked", is: .chunked),
        Row("Transfer-Encoding: gzip", .unsupportedTransferCoding),
        Row("Transfer-Encoding: gzip, chunked", .unsupportedTransferCoding),
        Row("Transfer-Encoding: chunked, gzip", .invalidTransferEncoding),
        Row("Transfer-Encoding: chunked, chunked", .invalidTransferEncoding),
        Row("Transfer-Encoding:", .invalidTransferEncoding),
        // 5.1: a proxy removes white space before the colon.
        Row("Transfer-Encoding : chunked", is: .chunked),
        Row("Content-Length\t: 5", is: .length(5)),
        // 5.2: obs-fold becomes SP, but not where the end of the message depends on it.
        Row("X: y\r\n z", is: .untilClose),
        Row("Content-Length: 5\r\n 6", .lineFolding),
        Row("Transfer-Encoding:\r\n chunked", .lineFolding),
        Row("X: y\rz", .bareCarriageReturn),
        Row("X: y\nz: a", .bareLineFeed),
        Row("X: y\0", .controlCharacter),
        Row("X\0: y", .invalidFieldName),
        Row("X y: z", .invalidFieldName),
        Row(": z", .invalidFieldName),
        Row(" X: y", .leadingWhitespace),
    ]

    @Test(arguments: responses) func responseFraming(_ row: Row) throws {
        let head = "\(row.version) 200 OK\r\n\(row.fields)\r\n\r\n"
        if let error = row.error {
            #expect(throws: error) { try response(head) }
        } else {
            #expect(try response(head).framing == row.framing)
        }
    }
}
