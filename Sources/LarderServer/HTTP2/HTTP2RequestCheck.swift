import HTTPTypes
import LarderHTTP

/// What a request over HTTP/2 has to be like before anything is decided about it.
///
/// Checked before, and the stream reset with PROTOCOL_ERROR otherwise: names in lower case, no unknown, repeated,
/// missing or late pseudo-header fields, no fields of a connection, no `te` but `trailers` (RFC 9113 sections 8.2 and
/// 8.3).
struct HTTP2RequestCheck {
    let limits: GatewayLimits

    /// Brings the request into the form that is decided about: with an authority, without `Host`, with one `cookie`.
    /// Returns the answer to a request that cannot be.
    func normalise(_ request: inout HTTPRequest) -> OwnAnswer? {
        if let answer = checkSizes(request) { return answer }
        // RFC 9113 section 8.3.1: the field counts where there is no pseudo-header field, and has to agree with it.
        let hosts = request.headerFields[values: .host]
        if let host = hosts.first {
            guard hosts.count == 1, request.authority == nil || request.authority?.lowercased() == host.lowercased()
            else { return OwnAnswer(400, "The request names two hosts.") }
            request.authority = host
            request.headerFields[.host] = nil
        }
        guard request.method != .connect else {
            return OwnAnswer(501, "This gateway does not open tunnels over HTTP/2.")
        }
        // Section 8.3.1: `*` is for OPTIONS only, and there is no user information in an authority.
        guard let path = request.path, path.hasPrefix("/") || (path == "*" && request.method == .options),
            path.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }),
            let authority = request.authority,
            authority.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !Self.delimiters.contains($0) }),
            Authority.split(authority) != nil
        else { return OwnAnswer(400, "The request has no valid target.") }
        let lengths = request.headerFields[values: .contentLength]
        guard lengths.isEmpty || (lengths.count == 1 && Self.length(lengths[0]) != nil) else {
            return OwnAnswer(400, "The length of the request's content is malformed.")
        }
        joinCookies(&request)
        return nil
    }

    /// End an authority, or are user information.
    private static let delimiters = Array("/?#@,\\".utf8)

    private func checkSizes(_ request: HTTPRequest) -> OwnAnswer? {
        guard request.path?.utf8.count ?? 0 <= limits.requestLineBytes else {
            return OwnAnswer(414, "The target of the request is over the limit.")
        }
        guard request.headerFields.count <= limits.fieldCount else {
            return OwnAnswer(431, "The request has too many fields.")
        }
        // Counted as SETTINGS_MAX_HEADER_LIST_SIZE is (RFC 9113 section 6.5.2).
        var size = 0
        for text in [request.method.rawValue, request.scheme, request.authority, request.path] {
            if let text { size += text.utf8.count + 42 }
        }
        for field in request.headerFields { size += field.name.rawName.utf8.count + field.value.utf8.count + 32 }
        guard size <= limits.headBytes else { return OwnAnswer(431, "The head of the request is over the limit.") }
        return nil
    }

    /// RFC 9113 section 8.2.3: several `cookie` fields "MUST be concatenated into a single octet string using the
    /// two-octet delimiter of 0x3b, 0x20 (the ASCII string "; ") before being passed into a non-HTTP/2 context".
    private func joinCookies(_ request: inout HTTPRequest) {
        let cookies = request.headerFields[values: .cookie]
        // Set as values: the plain setter takes a cookie apart again.
        if cookies.count > 1 { request.headerFields[values: .cookie] = [cookies.joined(separator: "; ")] }
    }

    /// Whether content follows a head that did not end the stream; nil where the next frame has to tell.
    ///
    /// Many clients end a GET with an empty frame of its own, which may come later. It must not keep the GET from the
    /// cache, and content that comes later must not be lost: so a request whose method seldom has content, and that
    /// does not say that it has, waits for the frame. RFC 9110 section 9.3.1 says of content in a GET that it has no
    /// generally defined semantics, not that there is none.
    static func announcesContent(_ head: HTTPRequest) -> Bool? {
        if let length = head.headerFields[.contentLength] { return Self.length(length) != 0 }
        if head.headerFields[.expect] != nil { return true }
        let methods: [HTTPRequest.Method] = [.get, .head, .delete, .options, .trace]
        return methods.contains(head.method) ? nil : true
    }

    /// Digits only, as RFC 9110 section 8.6 has it: `+3` and `3, 3` are lengths to some recipients and not to others.
    static func length(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ 48...57 ~= $0 }) else { return nil }
        return Int64(text)
    }
}

extension HTTPField.Name {
    static let host = HTTPField.Name("Host")!
}
