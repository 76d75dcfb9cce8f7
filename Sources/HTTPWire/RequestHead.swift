import HTTPTypes

/// The head of a request.
package struct RequestHead: Sendable {
    /// Method and effective target: scheme, authority and path with query. The path of an `OPTIONS` for the whole
    /// server is `*`; CONNECT has none. Fields as received, in order, without `Host`, which is the authority now.
    package var request: HTTPRequest
    package var version: HTTPVersion
    package var targetForm: RequestHeadView.TargetForm
    package var framing: BodyFraming
    /// Whether the client lets the connection stay open.
    package var persists: Bool
    /// `Expect: 100-continue`.
    package var expectsContinue: Bool

    /// Makes a head of the ranges of a view.
    /// - Parameters:
    ///   - view: what ``RequestHeadView/parse(_:limits:)`` found in `bytes`.
    ///   - bytes: the same bytes.
    ///   - scheme: of the connection; a target in absolute form has its own.
    package init(_ view: RequestHeadView, in bytes: UnsafeRawBufferPointer, scheme: String) throws(WireError) {
        guard let method = Self.method(view, bytes) else { throw .invalidMethod }
        var fields = HTTPFields()
        fields.reserveCapacity(view.fields.count)
        for line in view.fields where line.kind != .host {
            guard let field = line.field(in: bytes) else { throw .invalidFieldName }
            fields.append(field)
        }
        request = HTTPRequest(
            method: method, scheme: view.scheme.map { bytes.string($0).lowercased() } ?? scheme,
            authority: view.authority.map { bytes.string($0) }, path: Self.path(view, bytes), headerFields: fields)
        version = view.version
        targetForm = view.targetForm
        framing = view.framing
        persists = view.persists
        expectsContinue = view.expectsContinue
    }

    /// Reads a head, as ``HeadScanner`` finds it.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, scheme: String = "http", limits: HeadLimits = HeadLimits()
    ) throws(WireError) -> RequestHead {
        var view = RequestHeadView()
        try view.parse(bytes, limits: limits)
        return try RequestHead(view, in: bytes, scheme: scheme)
    }

    private static func method(_ view: RequestHeadView, _ bytes: UnsafeRawBufferPointer) -> HTTPRequest.Method? {
        if view.isMethod("GET", in: bytes) { return .get }
        if view.isMethod("HEAD", in: bytes) { return .head }
        return HTTPRequest.Method(bytes.string(view.method))
    }

    private static func path(_ view: RequestHeadView, _ bytes: UnsafeRawBufferPointer) -> String? {
        switch view.targetForm {
        case .authority: return nil
        case .origin, .asterisk: return bytes.string(view.path)
        case .absolute:
            if view.path.isEmpty {
                // RFC 9112 section 3.2.4: the last proxy turns "OPTIONS http://host" into "OPTIONS *".
                return view.isMethod("OPTIONS", in: bytes) ? "*" : "/"
            }
            let path = bytes.string(view.path)
            // "If the target URI's path component is empty, the client MUST send '/'" (section 3.2.1).
            return path.utf8.first == Byte.slash ? path : "/" + path
        }
    }
}
