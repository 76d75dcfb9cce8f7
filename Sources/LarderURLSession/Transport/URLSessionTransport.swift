import Foundation
import HTTPTypes
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A transport over URLSession, for programs that do not want another HTTP client.
///
///     let transport = URLSessionTransport(configuration)
///     let cache = HTTPCache(store: store, transport: transport)
///
/// The session inside has the proxies, the connection limits and the TLS settings of the configuration that is given.
/// It neither caches nor follows redirects, has no cookies, adds no fields of the configuration and answers no
/// challenges: `HTTPCache` and ``URLSessionCaching`` do.
///
/// URLSession takes a content coding off and leaves `Content-Encoding` and `Content-Length` as they came. A cache has
/// to know what its bytes are, so these two fields are renamed on the way into the cache, and get their names back in
/// responses of sessions that use it. A request with `Range` asks for `identity`: a part of a coded body cannot be
/// decoded.
///
/// - Note: A content of a request that comes as a stream is gathered in memory first, up to ``streamedContentLimit``.
///   The time limit `Timeouts.read` is rounded up to whole seconds; `Timeouts.connect` and `Timeouts.write` are not
///   told apart from it. Interim (1xx) responses are not reported.
public final class URLSessionTransport: Transport {
    /// The most content of a request that is gathered from a stream, in bytes: 64 MiB.
    public static let streamedContentLimit = 64 << 20

    private let session: InnerSession
    private let held = SessionBytes()
    private let overflowLimit: Int64

    /// Makes a transport.
    ///
    /// - Parameters:
    ///   - configuration: proxies, TLS, connection limits and network access. It is copied, so that later changes have
    ///     no effect. Default: `ephemeral`.
    ///   - overflowLimit: the most bytes of one body that wait in a temporary file because they are read more slowly
    ///     than they arrive, on Linux. With more the request fails with `TransportError.Code.overloaded`. The file has
    ///     no name, and is in `TMPDIR`, or else in /var/tmp. Elsewhere the server is held back, and this is ignored.
    ///     Default: 4 GiB.
    public init(_ configuration: URLSessionConfiguration = .ephemeral, overflowLimit: Int64 = 4 << 30) {
        session = InnerSession(configuration)
        self.overflowLimit = max(0, overflowLimit)
    }

    /// Ends requests in progress, and closes the connections when they have ended. Returns immediately. A request that
    /// is sent afterwards fails with `TransportError.Code.cannotConnect`.
    public func close() { session.close() }

    /// Received bytes that are in memory and have not been read yet: at most about 512 KiB for each request.
    public var heldBytes: Int { held.count }

    /// Sends a request, as `Transport.send(_:)` of `LarderHTTP` requires.
    ///
    /// - Parameter request: what to send.
    /// - Returns: the response, once its head is there.
    /// - Throws: `TransportError`. Its `cause` is the `URLError` where URLSession gave one.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let endpoint = endpoint(for: request)
        var outgoing = try Self.urlRequest(request, endpoint)
        if let body = request.body { outgoing.httpBody = try await Self.gathered(body, endpoint) }
        let exchange = SessionExchange(endpoint, held, overflowLimit: overflowLimit)
        guard session.start(outgoing, exchange) else {
            throw TransportError(
                .cannotConnect, mayHaveBeenSeen: false, endpoint: endpoint, "the transport is closed")
        }
        // Dropping it before the end of the body gives the request up.
        let reader = ExchangeReader(exchange)
        let received = try await exchange.head()
        guard (100...999).contains(received.status) else {
            throw TransportError(
                .malformedResponse, mayHaveBeenSeen: true, endpoint: endpoint,
                "\(endpoint) sent the status \(received.status)")
        }
        let head = HTTPResponse(
            status: HTTPResponse.Status(code: received.status),
            headerFields: NetworkFields.forCache(received.fields, status: received.status))
        let hasNoBody = request.head.method == .head || received.status == 204 || received.status == 304
        let length = hasNoBody ? 0 : head.headerFields[.contentLength].flatMap { Int64($0) }
        return TransportResponse(
            head: head, body: TransportBody(length: length) { () throws(TransportError) in try await reader.next() })
    }

    /// The request as URLSession takes it.
    private static func urlRequest(
        _ request: TransportRequest, _ endpoint: String
    ) throws(TransportError) -> URLRequest {
        let head = request.head
        func invalid(_ why: String) -> TransportError {
            TransportError(.invalidRequest, mayHaveBeenSeen: false, endpoint: endpoint, why)
        }
        guard let scheme = head.scheme, scheme == "http" || scheme == "https", let authority = head.authority,
            !authority.isEmpty
        else { throw invalid("the request has no host, or its scheme is neither http nor https") }
        let place = request.destination.map { "\($0.scheme)://\($0.host):\($0.port)" } ?? "\(scheme)://\(authority)"
        guard let url = URL(string: place + (head.path ?? "/")), url.host != nil else {
            throw invalid("'\(place)\(head.path ?? "/")' is not a URL that URLSession accepts")
        }
        var result = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        // Not in the initializer: Linux' Foundation then takes the limit of the configuration.
        result.timeoutInterval = max(1, request.timeouts.read.seconds.rounded(.up))
        result.httpMethod = head.method.rawValue
        result.httpShouldHandleCookies = false
        for field in head.headerFields {
            // More than one line of a name: the values are one list (RFC 9110 section 5.3).
            result.addValue(field.value, forHTTPHeaderField: field.name.rawName)
        }
        if head.headerFields.contains(.range), !head.headerFields.contains(.acceptEncoding) {
            result.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        if request.destination != nil { result.setValue(authority, forHTTPHeaderField: "Host") }
        return result
    }

    private static func gathered(_ body: RequestBody, _ endpoint: String) async throws(TransportError) -> Data {
        func failed(_ why: String, _ cause: (any Error)? = nil) -> TransportError {
            TransportError(.requestBodyFailed, mayHaveBeenSeen: false, endpoint: endpoint, why, cause: cause)
        }
        var data = Data()
        let pull = body.makePull()
        while true {
            let piece: [UInt8]?
            do { piece = try await pull() } catch { throw failed("the content could not be read: \(error)", error) }
            guard let piece else { break }
            data.append(contentsOf: piece)
            guard body.isReplayable || data.count <= streamedContentLimit else {
                throw failed("the content has more than \(streamedContentLimit) bytes, the limit for a stream")
            }
        }
        if let length = body.length, length != data.count {
            throw failed("the content has \(data.count) bytes, but \(length) were declared")
        }
        return data
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
