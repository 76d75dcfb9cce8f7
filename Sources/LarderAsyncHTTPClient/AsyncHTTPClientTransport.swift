import AsyncHTTPClient
import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP1
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Requests through AsyncHTTPClient: HTTP/1.1 and HTTP/2, its connection pool, proxies and TLS settings.
///
///     var configuration = HTTPClient.Configuration()
///     configuration.redirectConfiguration = .disallow
///     let client = HTTPClient(configuration: configuration)
///     let cache = HTTPCache(store: store, transport: AsyncHTTPClientTransport(client))
///
/// The client must not follow redirects or decompress: both change what a cache stores. Interim (1xx) responses are not
/// reported, as the client drops them. Until the head is there the request's time limits count, connecting and reading
/// together; for connecting alone, for writing and for the body those of the client's configuration.
public struct AsyncHTTPClientTransport: Transport {
    private let client: HTTPClient

    /// Uses a client, which the caller shuts down.
    /// - Parameter client: one that neither follows redirects nor decompresses: see `makeClient(_:)`.
    public init(_ client: HTTPClient) { self.client = client }

    /// A client that leaves redirects and compression to the cache's caller, with the connection limits of
    /// `configuration`.
    /// - Parameter configuration: connection limits, TLS and proxy. Default: those of the library.
    /// - Returns: a client that the caller shuts down.
    public static func makeClient(_ configuration: HTTPClient.Configuration = HTTPClient.Configuration()) -> HTTPClient
    {
        HTTPClient(configuration: innerConfiguration(configuration))
    }

    /// The same configuration for a client under a cache.
    static func innerConfiguration(_ configuration: HTTPClient.Configuration) -> HTTPClient.Configuration {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.decompression = .disabled
        return configuration
    }

    /// Sends a request, as `Transport.send(_:)` of `LarderHTTP` requires.
    /// - Parameter request: what to send.
    /// - Returns: the response, once its head is there.
    /// - Throws: `TransportError`.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let head = request.head
        guard let scheme = head.scheme, let authority = head.authority, !authority.isEmpty else {
            throw TransportError(.invalidRequest, mayHaveBeenSeen: false, "the request has no scheme or no host")
        }
        // Anything else would become a part of the host.
        let path = head.path ?? "/"
        guard path.hasPrefix("/") || path.hasPrefix("?") else {
            throw TransportError(.invalidRequest, mayHaveBeenSeen: false, "the path does not begin with a slash")
        }
        let name =
            request.destination.map { "\($0.scheme)://\($0.host):\($0.port)" } ?? "\(scheme)://\(authority)"
        var outgoing = HTTPClientRequest(url: name + path)
        outgoing.method = HTTPMethod(rawValue: head.method.rawValue)
        if request.destination != nil { outgoing.headers.add(name: "Host", value: authority) }
        for field in head.headerFields { outgoing.headers.add(name: field.name.rawName, value: field.value) }
        if request.body != nil, let content = ClientCall.current?.content {
            outgoing.body = content
        } else if let body = request.body {
            let length = body.length.map { HTTPClientRequest.Body.Length.known($0) } ?? .unknown
            outgoing.body = .stream(Pieces(pull: body.makePull()), length: length)
        }
        let time = request.timeouts.connect + request.timeouts.read
        let response = try await Self.attempt(name) {
            try await client.execute(outgoing, timeout: TimeAmount(time), logger: ClientCall.current?.logger)
        }
        var fields = HTTPFields()
        for (name, value) in response.headers {
            guard let name = HTTPField.Name(name) else {
                throw TransportError(
                    .malformedResponse, mayHaveBeenSeen: true, "\(authority) sent a field named '\(name)'")
            }
            fields.append(HTTPField(name: name, value: value))
        }
        let hasNoBody = head.method == .head || response.status.code == 204 || response.status.code == 304
        let length = hasNoBody ? 0 : fields[.contentLength].flatMap { Int64($0) }
        let reader = Reader(response.body.makeAsyncIterator())
        return TransportResponse(
            head: HTTPResponse(status: .init(code: Int(response.status.code)), headerFields: fields),
            body: TransportBody(length: length) { () throws(TransportError) in
                try await Self.attempt(name, isBody: true) { try await reader.next() }
            })
    }

    /// Runs a call of the client and gives its errors our names.
    private static func attempt<R>(
        _ name: String, isBody: Bool = false, _ body: () async throws -> R
    ) async throws(TransportError) -> R {
        do {
            return try await body()
        } catch let error as CancellationError {
            throw TransportError(
                .cancelled, mayHaveBeenSeen: true, endpoint: name, "the request to \(name) was cancelled", cause: error)
        } catch let error as HTTPClientError {
            let (code, isSeen) = classify(error, isBody: isBody)
            throw TransportError(
                code, mayHaveBeenSeen: isSeen, endpoint: name, "\(name): \(error.shortDescription)", cause: error)
        } catch let error as NIOConnectionError {
            throw TransportError(
                .cannotConnect, mayHaveBeenSeen: false, endpoint: name, "no connection to \(name): \(error)",
                cause: error)
        } catch let error as IOError where [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH].contains(error.errnoCode) {
            throw TransportError(
                .cannotConnect, mayHaveBeenSeen: false, endpoint: name, "no connection to \(name): \(error)",
                cause: error)
        } catch let error as HTTPParserError where isBody && error == .invalidEOFState {
            throw TransportError(
                .incompleteResponse, mayHaveBeenSeen: true, endpoint: name, "\(name) closed the connection early",
                cause: error)
        } catch let error as HTTPParserError {
            throw TransportError(
                .malformedResponse, mayHaveBeenSeen: true, endpoint: name, "\(name): \(error.debugDescription)",
                cause: error)
        } catch {
            throw TransportError(
                isBody ? .incompleteResponse : .closed, mayHaveBeenSeen: true, endpoint: name, "\(name): \(error)",
                cause: error)
        }
    }

    private static func classify(_ error: HTTPClientError, isBody: Bool) -> (TransportError.Code, Bool) {
        switch error {
        case .invalidURL, .emptyHost, .emptyScheme, .traceRequestWithBody:
            (.invalidRequest, false)
        case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout: (.timedOut, false)
        case .readTimeout, .deadlineExceeded, .writeTimeout: (.timedOut, true)
        case .alreadyShutdown: (.cannotConnect, false)
        case .cancelled, .requestStreamCancelled: (.cancelled, true)
        case .bodyLengthMismatch: (.requestBodyFailed, true)
        default: (isBody ? .incompleteResponse : .closed, true)
        }
    }

    /// The content of a request as the client wants it.
    private struct Pieces: AsyncSequence, Sendable {
        typealias Element = ByteBuffer
        let pull: @Sendable () async throws -> [UInt8]?

        struct Iterator: AsyncIteratorProtocol {
            let pull: @Sendable () async throws -> [UInt8]?
            mutating func next() async throws -> ByteBuffer? { try await pull().map { ByteBuffer(bytes: $0) } }
        }

        func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }
    }

    /// Holds the iterator of a body for the one reader a body has.
    private final class Reader: @unchecked Sendable {
        // SAFETY: a TransportBody is never read from two tasks at once.
        private var iterator: HTTPClientResponse.Body.AsyncIterator
        init(_ iterator: HTTPClientResponse.Body.AsyncIterator) { self.iterator = iterator }

        func next() async throws -> [UInt8]? {
            while let buffer = try await iterator.next() {
                if buffer.readableBytes > 0 { return Array(buffer.readableBytesView) }
            }
            return nil
        }
    }
}
