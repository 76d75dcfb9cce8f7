/// Why the next hop gave no valid answer.
public struct TransportError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and so what the caller can do about it.
    public struct Code: Sendable, Hashable, CaseIterable, CustomStringConvertible {
        private enum Value: String, Sendable, CaseIterable {
            case invalidRequest, cannotConnect, overloaded, timedOut, closed, incompleteResponse, malformedResponse,
                responseTooLarge, requestBodyFailed, cancelled
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// The request cannot be sent: a scheme other than http and https, no host, or a head that has no valid form.
        public static let invalidRequest = Code(.invalidRequest)
        /// No connection: the name has no address, no server listens, TLS failed, or a proxy refused.
        public static let cannotConnect = Code(.cannotConnect)
        /// As many requests as may wait for the next hop wait already, or all its HTTP/2 streams stayed taken. Nothing
        /// was sent; trying later may help.
        public static let overloaded = Code(.overloaded)
        /// A time limit passed.
        public static let timedOut = Code(.timedOut)
        /// The connection ended before the head of a response.
        public static let closed = Code(.closed)
        /// The message ended before its end: the connection closed early, or a chunk is missing.
        public static let incompleteResponse = Code(.incompleteResponse)
        /// The response is not HTTP, or its framing is broken.
        public static let malformedResponse = Code(.malformedResponse)
        /// The response is over a limit, such as that of the head's size.
        public static let responseTooLarge = Code(.responseTooLarge)
        /// The source of the request's content failed or had another length than declared.
        public static let requestBodyFailed = Code(.requestBodyFailed)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)

        /// All codes of this version. Later versions may have more.
        public static var allCases: [Code] { Value.allCases.map { Code($0) } }

        /// The name of the code.
        public var description: String { value.rawValue }
    }

    /// What went wrong.
    public let code: Code
    /// Whether the next hop may have acted on the request: false only where no byte of it can have arrived.
    public let mayHaveBeenSeen: Bool
    /// Whether a connection kept from an earlier request closed before a byte of the response came. Servers close kept
    /// connections at any time, so this says little about the request: "a client, server, or proxy MAY close the
    /// transport connection at any time" (RFC 9112 section 9.5).
    public let lostKeptConnection: Bool
    /// Where the request was sent, for people to read: a host and port or an origin, the proxy's where there is one.
    /// Each transport has its own form, which need not be that of ``Transport/endpoint(for:)``. Nil where it is not
    /// known.
    public let endpoint: String?
    /// What happened, in words: names the next hop, and says what the cause says.
    public let message: String
    /// The error underneath, of the system or of a library; nil where there is none.
    public let cause: (any Error)?
    /// What stood in the way of a connection; nil where it is not known, and for other codes.
    public var connectFailure: ConnectFailure?

    /// Makes an error.
    /// - Parameters:
    ///   - code: what went wrong.
    ///   - mayHaveBeenSeen: whether the next hop may have acted on the request.
    ///   - lostKeptConnection: see ``lostKeptConnection``. Default: false.
    ///   - endpoint: the next hop. Default: not known.
    ///   - message: what happened; names the next hop.
    ///   - cause: the error underneath. Default: none.
    public init(
        _ code: Code, mayHaveBeenSeen: Bool, lostKeptConnection: Bool = false, endpoint: String? = nil,
        _ message: String, cause: (any Error)? = nil
    ) {
        self.code = code
        self.mayHaveBeenSeen = mayHaveBeenSeen
        self.lostKeptConnection = lostKeptConnection
        self.endpoint = endpoint
        self.message = message
        self.cause = cause
    }

    /// Code and message.
    public var description: String { "\(code): \(message)" }
}

/// What stood in the way of a connection: ``TransportError/Code/cannotConnect``.
public enum ConnectFailure: String, Sendable, Hashable {
    /// The host's name has no address.
    case nameNotFound
    /// No process listens on the port.
    case refused
    /// There is no way to the address, or a limit of this machine.
    case unreachable
    /// No TLS: the certificate is not trusted, is not for the host, or the two sides have nothing in common.
    case tls
}
