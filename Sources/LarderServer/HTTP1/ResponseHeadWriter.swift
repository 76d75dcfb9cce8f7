import HTTPTypes
import HTTPWire

/// Writes the heads of responses over HTTP/1, with the fields of the connection (RFC 9112 sections 6 and 9).
enum ResponseHeadWriter {
    /// What the head of a final response says.
    struct Written {
        var status: Int
        var closes: Bool
        var isChunked: Bool
    }

    /// Appends the head of a final response.
    /// - Parameters:
    ///   - length: of the content, in bytes; nil where it is not known.
    ///   - bytes: where it goes. What was appended is of no use after an error.
    static func append(
        _ head: HeadForm, length: Int64?, to request: CurrentRequest, into bytes: inout [UInt8]
    ) throws(WireError) -> Written {
        let status = head.status.code
        var written = Written(status: status, closes: request.closes, isChunked: false)
        try MessageWriter.appendStatusLine(head.status.withReason, to: &bytes)
        let declared = try MessageWriter.appendFields(of: head, to: &bytes)
        if status == 204 || status < 200 {
            // RFC 9110 section 8.6: no Content-Length.
        } else if request.method == .head || status == 304 {
            // The length of what is not sent, if the origin said it.
            if let declared {
                try MessageWriter.append(HTTPField(name: .contentLength, value: declared), to: &bytes)
            }
        } else if let length {
            bytes += "Content-Length: ".utf8
            bytes += String(length).utf8
            bytes += "\r\n".utf8
        } else if request.version == .http11 {
            bytes += "Transfer-Encoding: chunked\r\n".utf8
            written.isChunked = true
        } else {
            written.closes = true
        }
        // Where the next request would start is not certain.
        if request.mayNeverBeComplete { written.closes = true }
        if written.closes {
            bytes += "Connection: close\r\n\r\n".utf8
        } else if request.version == .http10 {
            bytes += "Connection: keep-alive\r\n\r\n".utf8
        } else {
            bytes += "\r\n".utf8
        }
        return written
    }

    /// Appends the head of an interim response.
    /// - Returns: false, having appended nothing, for one that is not passed on: 100 is sent when the content is
    ///   wanted, and 101 is between the gateway and the origin.
    static func appendInterim(_ head: HTTPResponse, into bytes: inout [UInt8]) -> Bool {
        guard head.status.code != 100, head.status.code != 101 else { return false }
        do throws(WireError) {
            try MessageWriter.append(head, to: &bytes)
            return true
        } catch {
            return false
        }
    }
}
