import HTTPTypes
import HTTPWire
import LarderHTTP

/// A request in the form that goes out.
struct RequestMessage: Sendable {
    let method: HTTPRequest.Method
    /// The head for HTTP/2, without the fields of the framing; nil for one that only HTTP/1.1 is used for.
    private let request: HTTPRequest?
    /// The fields that say where the message ends.
    private let framing: HTTPFields
    /// The head as HTTP/1.1 has it, with the content behind it where that is short and in memory.
    let start: [UInt8]
    /// Where in ``start`` the content begins.
    let contentStart: Int
    /// Whether sending it twice does no more than sending it once (RFC 9110 section 9.2.2).
    let isIdempotent: Bool
    /// Whether its content, if it has some, can be read again.
    let isReplayable: Bool
    /// Content that is sent piece by piece.
    let stream: RequestBody?
    /// Whether the server is to say first that it wants that.
    let expectsContinue: Bool
    /// Whether the content that is sent piece by piece is sent in chunks; else it has its length in the head.
    let isChunked: Bool

    private static let shortBytes: Int64 = 64 << 10
    /// Fields that the transport makes itself, or that have no business beyond the connection they came on (RFC 9110
    /// section 7.6.1). Credentials for a proxy are for the one that asked for them, and never for an origin (section
    /// 11.7.2).
    private static let own: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "upgrade",
    ]
    private static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .put, .delete, .options, .trace]
    /// "A user agent SHOULD send Content-Length in a request when the method defines a meaning for enclosed content"
    /// (RFC 9110 section 8.6), zero included.
    private static let withContent: Set<HTTPRequest.Method> = [.post, .put, .patch]

    /// - Parameter proxy: gets the request itself, not a tunnel; nil for none.
    init(_ request: TransportRequest, for proxy: NIOTransport.Proxy?) async throws(TransportError) {
        var head = request.head
        method = head.method
        isIdempotent = Self.idempotent.contains(method)
        isReplayable = request.body?.isReplayable ?? true
        if head.headerFields.contains(where: { Self.own.contains($0.name.canonicalName) }) {
            head.headerFields = HTTPFields(head.headerFields.filter { !Self.own.contains($0.name.canonicalName) })
        }
        let length = request.body == nil ? 0 : request.body?.length
        if let length, length < 0 { throw .invalidRequest("the content's length is \(length)") }

        var framing = HTTPFields()
        if let length {
            if request.body != nil || Self.withContent.contains(method) { framing[.contentLength] = String(length) }
        } else {
            framing[.transferEncoding] = "chunked"
        }
        self.request = head
        self.framing = framing
        if let proxy {
            // "The request-target ... in absolute-form" (RFC 9112 section 3.2.2); of `*` there is nothing left (3.2.4).
            head.path = "http://\(head.authority ?? "")" + (head.path == "*" ? "" : head.path ?? "/")
            if let credentials = proxy.credentials { framing[.proxyAuthorization] = credentials.field }
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        do throws(WireError) {
            try MessageWriter.append(head, additional: framing, to: &bytes)
        } catch {
            throw .invalidRequest(
                "'\(head.method.rawValue) \(head.path ?? "/")' for '\(head.authority ?? "")' cannot be written as a request"
            )
        }
        isChunked = length == nil
        contentStart = bytes.count
        if let body = request.body, body.isReplayable, let length, length <= Self.shortBytes {
            try await Self.append(body, length, to: &bytes)
            stream = nil
        } else {
            stream = length == 0 ? nil : request.body
        }
        expectsContinue = head.headerFields[.expect]?.lowercased() == "100-continue"
        start = bytes
    }

    /// The head with the fields that say where the message ends, for HTTP/2.
    var head: HTTPRequest {
        var head = request ?? HTTPRequest(method: method, scheme: nil, authority: nil, path: nil)
        head.scheme = head.scheme?.lowercased()
        for field in framing { head.headerFields.append(field) }
        return head
    }

    /// A GET without content whose head is written, for HTTP/1.1.
    /// - Parameter start: with `Host` and without a field of the connection.
    init(relaying start: [UInt8]) {
        method = .get
        request = nil
        framing = [:]
        self.start = start
        contentStart = start.count
        isIdempotent = true
        isReplayable = true
        stream = nil
        expectsContinue = false
        isChunked = false
    }

    /// Content in memory, which is there at once.
    private static func append(_ body: RequestBody, _ length: Int64, to bytes: inout [UInt8])
        async throws(TransportError)
    {
        let end = Int64(bytes.count) + length
        let pull = body.makePull()
        do {
            while let piece = try await pull() { bytes += piece }
        } catch {
            throw TransportError(
                .requestBodyFailed, mayHaveBeenSeen: false, "the content cannot be read: \(error)", cause: error)
        }
        guard Int64(bytes.count) == end else {
            throw TransportError(
                .requestBodyFailed, mayHaveBeenSeen: false,
                "the content does not have the \(length) bytes it was said to have")
        }
    }
}
