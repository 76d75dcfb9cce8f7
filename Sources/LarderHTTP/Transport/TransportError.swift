/// The reason that the next hop gave no valid answer.
public struct TransportError: Error, Sendable, CustomStringConvertible {
    /// The kind of error, by what the caller can do about it.
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
        /// As many requests as may wait for the next hop are waiting already, or all its HTTP/2 streams stayed taken.
        /// Nothing was sent; trying later may help.
        public static let overloaded = Code(.overloaded)
        /// A time limit passed.
        public static let timedOut = Code(.timedOut)
        /// The connection ended before the head of a response.
        public static let closed = Code(.closed)
        /// The message was cut off: the connection closed early, or a chunk is missing.
        public static let incompleteResponse = Code(.incompleteResponse)
        /// The response is not HTTP, or its framing is broken.
        public static let malformedResponse = Code(.malformedResponse)
        /// The response is over a limit, such as the one for the size of the head.
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

    /// The kind of error, by what the caller can do about it.
    public let code: Code
    /// True if the next hop may have acted on the request; false only if no byte of it can have arrived.
    public let mayHaveBeenSeen: Bool
    /// True if a connection kept from an earlier request closed before a byte of the response arrived. Servers close
    /// kept connections at any time, so this says little about the request: "a client, server, or proxy MAY close the
    /// transport connection at any time" (RFC 9112 section 9.5).
    public let lostKeptConnection: Bool
    /// The place where the request was sent, for people to read: a host and port or an origin, those of the proxy if
    /// there is one. Each transport has its own form, which need not be that of ``Transport/endpoint(for:)``. Nil if it
    /// is not known.
    public let endpoint: String?
    /// The error in words, with the next hop and the message of the cause.
    public let message: String
    /// The underlying error, of the system or of a library; nil if there is none.
    public let cause: (any Error)?
    /// The reason that a connection failed; nil if it is not known, and for other codes.
    public var connectFailure: ConnectFailure?

    /// Makes an error.
    /// - Parameters:
    ///   - code: the kind of error.
    ///   - mayHaveBeenSeen: true if the next hop may have acted on the request.
    ///   - lostKeptConnection: see ``lostKeptConnection``. Default: false.
    ///   - endpoint: the next hop. Default: not known.
    ///   - message: the error in words; names the next hop.
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

/// The reason that a connection failed: ``TransportError/Code/cannotConnect``.
public enum ConnectFailure: String, Sendable, Hashable {
    /// The host's name has no address.
    case nameNotFound
    /// No process listens on the port.
    case refused
    /// There is no route to the address, or a limit of this machine was reached.
    case unreachable
    /// No TLS: the certificate is not trusted, is not for the host, or the two sides have nothing in common.
    case tls
}
