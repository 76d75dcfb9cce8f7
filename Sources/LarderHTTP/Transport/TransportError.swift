/// Why the next hop gave no proper answer.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong.
    public enum Kind: String, Sendable, Hashable {
        /// The request cannot be sent: a scheme other than http and https, no host, or a head that has no proper form.
        case invalidRequest
        /// No connection: the name has no address, no server listens, TLS failed, or a proxy refused.
        case cannotConnect
        /// As many requests as may wait for the next hop wait already, or all its HTTP/2 streams stayed taken. Nothing
        /// was sent; trying later may help.
        case overloaded
        /// A time limit passed.
        case timedOut
        /// The connection ended before the head of a response.
        case closed
        /// The message ended before its end: the connection closed early, or a chunk is missing.
        case incompleteResponse
        /// The response is not HTTP, or its framing is broken.
        case malformedResponse
        /// The response is over a limit, such as that of the head's size.
        case responseTooLarge
        /// The source of the request's content failed or had another length than declared.
        case requestBodyFailed
        /// The task was cancelled.
        case cancelled
    }

    /// What went wrong.
    public let kind: Kind
    /// Whether the next hop may have acted on the request: false only where no byte of it can have arrived.
    public let mayHaveBeenSeen: Bool
    /// Whether a connection kept from an earlier request closed before a byte of the response came. Servers close kept
    /// connections at any time, so this says little about the request: "a client, server, or proxy MAY close the
    /// transport connection at any time" (RFC 9112 section 9.5).
    public let lostKeptConnection: Bool
    /// What happened, in words: names the host and, where there is one, the error of the system.
    public let message: String
    /// What stood in the way of a connection; nil where it is not known, and for other kinds.
    public var connectFailure: ConnectFailure?

    /// Makes an error.
    public init(_ kind: Kind, mayHaveBeenSeen: Bool, lostKeptConnection: Bool = false, _ message: String) {
        self.kind = kind
        self.mayHaveBeenSeen = mayHaveBeenSeen
        self.lostKeptConnection = lostKeptConnection
        self.message = message
    }

    /// Kind and message.
    public var description: String { "\(kind.rawValue): \(message)" }
}

/// What stood in the way of a connection: ``TransportError/Kind/cannotConnect``.
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
