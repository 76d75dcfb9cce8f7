import HTTPTypes

/// The head of a response.
package struct ResponseHead: Sendable {
    /// Status, and fields as received, all in order.
    package let lines: HeadLines
    package let version: HTTPVersion
    package let framing: BodyFraming
    /// Whether the connection can be used again once the content has been read.
    package let persists: Bool

    /// Status and fields as objects.
    package var response: HTTPResponse { lines.response }

    /// Reads a head, as ``HeadScanner`` finds it.
    /// - Parameters:
    ///   - bytes: a head with its empty line.
    ///   - method: of the request that it answers; content depends on it.
    ///   - limits: of the number of fields; the scanner has seen to the sizes.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, answering method: HTTPRequest.Method, limits: HeadLimits = HeadLimits()
    ) throws(WireError) -> ResponseHead {
        var index = 0
        let (status, version) = try statusLine(bytes, &index)
        var lines: [FieldLine] = []
        lines.reserveCapacity(24)
        try FieldLine.parse(bytes, from: index, rules: .response, maximum: limits.fields, into: &lines)

        var framingFields = FramingFields()
        for line in lines { try framingFields.add(line, in: bytes) }
        let framing = try Self.framing(framingFields, status: status.code, method: method, version: version)
        let persists =
            version.persists(close: framingFields.close, keepAlive: framingFields.keepAlive)
            && framing != .untilClose && framing != .tunnel
        return ResponseHead(
            lines: HeadLines(status, bytes, lines), version: version, framing: framing, persists: persists)
    }

    /// RFC 9112 section 6.3.
    private static func framing(
        _ fields: FramingFields, status: Int, method: HTTPRequest.Method, version: HTTPVersion
    ) throws(WireError) -> BodyFraming {
        // Rule 1: these end with the head "regardless of the header fields present in the message".
        if method == .head || (100..<200).contains(status) || status == 204 || status == 304 { return .none }
        // Rule 2.
        if method == .connect, (200..<300).contains(status) { return .tunnel }
        // Rules 3 to 8.
        return try fields.responseFraming(version: version)
    }

    /// `HTTP-version SP status-code SP [ reason-phrase ] CRLF` (RFC 9112 section 4). The blank before an empty reason,
    /// which many servers leave out, is not asked for.
    private static func statusLine(
        _ bytes: UnsafeRawBufferPointer, _ index: inout Int
    ) throws(WireError) -> (HTTPResponse.Status, HTTPVersion) {
        let digits = try StartLine.version(bytes, &index)
        guard digits.major == 1 else { throw .unsupportedVersion }
        guard index + 5 <= bytes.count, bytes[index] == Byte.space else { throw .invalidStatus }
        var code = 0
        for at in index + 1...index + 3 {
            guard bytes[at].isDigit else { throw .invalidStatus }
            code = code * 10 + Int(bytes[at] - 0x30)
        }
        // "A client MUST understand the class of any status code" (RFC 9110 section 15); there is no class below 100.
        guard code >= 100 else { throw .invalidStatus }
        index += 4
        var reason = ""
        if bytes[index] == Byte.space {
            let start = index + 1
            while index < bytes.count, !bytes[index].isControl { index += 1 }
            guard index < bytes.count else { throw .incomplete }
            reason = latin1(bytes, start..<index)
        }
        guard bytes[index] < 0x20 else { throw .invalidStatus }
        index = try FieldLine.lineEnd(bytes, at: index)
        // RFC 9110 section 2.5: a higher minor version is read as the highest one that is known.
        return (HTTPResponse.Status(code: code, reasonPhrase: reason), digits.minor == 0 ? .http10 : .http11)
    }

    /// As `HTTPResponse.Status` wants it: each byte one scalar.
    private static func latin1(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> String {
        if range.count == 2, bytes.equals("OK", at: range) { return "OK" }
        if range.allSatisfy({ bytes[$0] < 0x80 }) { return bytes.string(range) }
        var scalars = String.UnicodeScalarView()
        for index in range { scalars.append(Unicode.Scalar(bytes[index])) }
        return String(scalars)
    }
}
