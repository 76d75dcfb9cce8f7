import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHPACK
import NIOHTTP2

/// Reads the response to one request from the frames of a stream (RFC 9113 section 8.1).
struct HTTP2ResponseReader {
    private let endpoint: NIOTransport.Endpoint
    /// Content that the final head declared, or that the response cannot have, in bytes; nil where nothing says.
    private var expected: Int64?
    /// Content that has come, in bytes.
    private var received: Int64 = 0
    /// Whether the final head has come.
    private(set) var hasHead = false
    /// Whether anything has come.
    private(set) var isAnswered = false

    init(_ endpoint: NIOTransport.Endpoint) { self.endpoint = endpoint }

    /// Reads one frame.
    /// - Returns: whether it ends the response.
    mutating func read(
        _ frame: HTTP2Frame.FramePayload, into exchange: Exchange
    ) throws(TransportError) -> Bool {
        switch frame {
        case .headers(let headers):
            isAnswered = true
            if !hasHead {
                try readHead(headers, into: exchange)
            } else if !headers.endStream || headers.headers.contains(where: { $0.name.hasPrefix(":") }) {
                // RFC 9113 sections 8.1 and 8.3: a second head does not end the content of the first.
                throw malformed("invalid trailer fields")
            }
            // Trailer fields are dropped.
            if headers.endStream { try checkEnd(exchange) }
            return headers.endStream
        case .data(let data):
            guard hasHead, case .byteBuffer(let buffer) = data.data else { throw malformed("content before a head") }
            received += Int64(buffer.readableBytes)
            if let expected, received > expected { throw malformed("more content than the head declares") }
            if buffer.readableBytes > 0 { buffer.withUnsafeReadableBytes { exchange.append($0[...]) } }
            if data.endStream { try checkEnd(exchange) }
            return data.endStream
        default: return false
        }
    }

    private mutating func readHead(
        _ headers: HTTP2Frame.FramePayload.Headers, into exchange: Exchange
    ) throws(TransportError) {
        let response = try response(headers.headers)
        guard (100..<200).contains(response.status.code) else {
            hasHead = true
            expected = try length(of: response, exchange.message.method)
            return exchange.receive(.objects(response), length: headers.endStream ? 0 : expected)
        }
        // 101 has no place in HTTP/2 (RFC 9113 section 8.6).
        guard !headers.endStream, exchange.receive(interim: response) else {
            throw malformed("interim responses that are out of place")
        }
    }

    private func checkEnd(_ exchange: Exchange) throws(TransportError) {
        guard hasHead else { throw malformed("no final response") }
        if let expected, received < expected, !hasNoContent(exchange.message.method) {
            throw TransportError(
                .incompleteResponse, mayHaveBeenSeen: true,
                endpoint: "\(endpoint)",
                "\(endpoint) sent \(received) of the \(expected) bytes of content that the head declares")
        }
    }

    /// RFC 9113 section 8.2.2: "An endpoint MUST NOT generate an HTTP/2 message containing connection-specific header
    /// fields", and one that does is malformed.
    private static let forbidden: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    ]

    /// RFC 9113 sections 8.1, 8.2 and 8.3.
    func response(_ headers: HPACKHeaders) throws(TransportError) -> HTTPResponse {
        // `HTTPFields` has no more, and stops the program; HTTP/1.1 has the same limit (`HeadLimits`).
        guard headers.count <= 65_000 else { throw malformed("\(headers.count) fields") }
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
    /// - Parameters:
    ///   - fault: what the stream or its connection reported.
    ///   - isKept: whether the connection was used before.
    ///   - session: knows whether the server said that it did not process the stream.
    func failure(_ fault: (any Error)?, isKept: Bool, _ session: HTTP2SessionHandler?) -> TransportError {
        let why = fault.map { ": \(TransportError.describe($0))" } ?? ""
        if hasHead {
            return TransportError(
                .incompleteResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "\(endpoint) ended the stream within the content\(why)")
        }
        // RFC 9113 section 8.7: neither was acted on.
        if let closed = fault as? NIOHTTP2Errors.StreamClosed, !isAnswered, session?.hasFailed != true,
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
            .closed, mayHaveBeenSeen: true, lostKeptConnection: !isReset && !isAnswered && isKept,
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
