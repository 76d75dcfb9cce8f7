import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore
import NIOHPACK
import NIOHTTP2

/// Responses as frames bring them.
extension HTTP2StreamHandler {
    /// Reads one frame.
    func take(_ frame: HTTP2Frame.FramePayload, _ exchange: Exchange) throws(TransportError) {
        switch frame {
        case .headers(let headers):
            isAnswered = true
            if !hasHead {
                try takeHead(headers, exchange)
            } else if !headers.endStream || headers.headers.contains(where: { $0.name.hasPrefix(":") }) {
                // RFC 9113 sections 8.1 and 8.3: a second head does not end the content of the first.
                throw malformed("invalid trailer fields")
            }
            // Trailer fields are dropped.
            if headers.endStream { try end(exchange) }
        case .data(let data):
            guard hasHead, case .byteBuffer(let buffer) = data.data else { throw malformed("content before a head") }
            received += Int64(buffer.readableBytes)
            if let expected, received > expected { throw malformed("more content than the head declares") }
            if buffer.readableBytes > 0 { buffer.withUnsafeReadableBytes { exchange.append($0[...]) } }
            if data.endStream { try end(exchange) }
        default: break
        }
    }

    private func takeHead(
        _ headers: HTTP2Frame.FramePayload.Headers, _ exchange: Exchange
    ) throws(TransportError) {
        let response = try response(headers.headers)
        let code = response.status.code
        guard (100..<200).contains(code) else {
            hasHead = true
            expected = try length(of: response, exchange.message.method)
            exchange.head = (response, headers.endStream ? 0 : expected)
            // The server reads no more of the request.
            exchange.upload?.cancel()
            return
        }
        exchange.interimCount += 1
        // 101 has no place in HTTP/2 (RFC 9113 section 8.6).
        guard code != 101, exchange.interimCount <= Exchange.maximumInterim, !headers.endStream else {
            throw malformed("interim responses that are out of place")
        }
        exchange.interim = response
    }

    private func end(_ exchange: Exchange) throws(TransportError) {
        guard hasHead else { throw malformed("no final response") }
        if let expected, received < expected, !hasNoContent(exchange.message.method) {
            throw TransportError(
                .incompleteResponse, mayHaveBeenSeen: true,
                endpoint: "\(endpoint)",
                "\(endpoint) sent \(received) of the \(expected) bytes of content that the head declares")
        }
        finish(exchange)
    }

    /// RFC 9113 section 8.2.2: "An endpoint MUST NOT generate an HTTP/2 message containing connection-specific header
    /// fields", and one that does is malformed.
    private static let forbidden: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    ]

    /// RFC 9113 sections 8.1, 8.2 and 8.3.
    private func response(_ headers: HPACKHeaders) throws(TransportError) -> HTTPResponse {
        var status: Int?
        var fields = HTTPFields()
        fields.reserveCapacity(headers.count)
        for (name, value, _) in headers {
            if name == ":status" {
                guard status == nil, fields.isEmpty, value.utf8.count == 3,
                    value.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
                    let code = Int(value), code >= 100
                else { throw malformed("the status '\(value.prefix(16))'") }
                status = code
                continue
            }
            // "A field value MUST NOT contain the zero value, line feed, or carriage return at any position" (section
            // 8.2.1): what follows a line feed would be a field, or a response, to the next recipient.
            guard let name = HTTPField.Name(name), name.rawName == name.canonicalName,
                !Self.forbidden.contains(name.canonicalName),
                !value.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 })
            else { throw malformed("a field that has no valid form, or no place in HTTP/2") }
            fields.append(HTTPField(name: name, value: value))
        }
        guard let status else { throw malformed("no status") }
        return HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    }

    private func hasNoContent(_ method: HTTPRequest.Method) -> Bool { method == .head || expected == 0 }

    /// The content that is to come; nil where the head does not say.
    private func length(of response: HTTPResponse, _ method: HTTPRequest.Method) throws(TransportError) -> Int64? {
        let values = Set(response.headerFields[values: .contentLength])
        guard values.count <= 1 else { throw malformed("several lengths") }
        var declared: Int64?
        if let value = values.first {
            guard !value.isEmpty, value.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int64(value) else {
                throw malformed("the length '\(value.prefix(32))'")
            }
            declared = number
        }
        if method == .head || response.status.code == 204 || response.status.code == 304 { return 0 }
        return declared
    }

    private func malformed(_ what: String) -> TransportError {
        TransportError(
            .malformedResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
            "the response of \(endpoint) has \(what)")
    }

    /// Why a stream ended before its response did.
    func ending(_ fault: (any Error)?) -> TransportError {
        let why = fault.map { ": \(TransportError.describe($0))" } ?? ""
        if hasHead {
            return TransportError(
                .incompleteResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "\(endpoint) ended the stream within the content\(why)")
        }
        // RFC 9113 section 8.7: neither was acted on.
        if let closed = fault as? NIOHTTP2Errors.StreamClosed, !isAnswered,
            closed.errorCode == .refusedStream || session?.hasGone(before: closed.streamID) == true
        {
            return TransportError(
                .closed, mayHaveBeenSeen: false, endpoint: "\(endpoint)", "\(endpoint) did not process the request")
        }
        if fault is NIOHTTP2Errors.ExcessivelyLargeHeaderBlock || fault is NIOHPACKErrors.MaxHeaderListSizeViolation {
            return TransportError(
                .responseTooLarge, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "the response of \(endpoint) has a head over the limit")
        }
        let isReset = fault is NIOHTTP2Errors.StreamClosed
        return TransportError(
            .closed, mayHaveBeenSeen: true, lostKeptConnection: !isReset && !isAnswered && exchange?.isKept == true,
            endpoint: "\(endpoint)", "\(endpoint) ended the stream before it answered\(why)")
    }
}

extension HTTPRequest {
    /// As HTTP/2 sends it (RFC 9113 section 8.3.1); `Host` is the authority.
    var hpack: HPACKHeaders {
        var headers = HPACKHeaders()
        headers.reserveCapacity(headerFields.count + 4)
        headers.add(name: ":method", value: method.rawValue)
        // That of the connection: behind a reverse proxy the client's may be another.
        headers.add(name: ":scheme", value: "https")
        headers.add(name: ":authority", value: authority ?? "")
        headers.add(name: ":path", value: path.flatMap { $0.isEmpty ? nil : $0 } ?? "/")
        for field in headerFields where field.name.canonicalName != "transfer-encoding" {
            // Secrets stay out of the table that later requests are compressed with (RFC 7541 section 7.1.3).
            let isSecret = ["authorization", "cookie"].contains(field.name.canonicalName)
            headers.add(
                name: field.name.canonicalName, value: field.value, indexing: isSecret ? .neverIndexed : .indexable)
        }
        return headers
    }
}
