/// Why a fetch has no answer. A miss in itself is no error; a miss that may not be loaded is.
public struct FetchError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Kind: String, Sendable, Hashable {
        /// The URL cannot be parsed, or is neither http nor https.
        case invalidURL
        /// Nothing usable is stored, and the policy or the offline mode forbids to load it.
        case notCached
        /// No policy is registered under the id.
        case unknownPolicy
        /// A policy of the user's failed.
        case policyFailed
        /// The origin cannot be reached or gave no proper answer: see ``FetchError/transport``.
        case origin
        /// Too many requests wait for the origin already; this one was not sent. Trying later may help.
        case overloaded
        /// A time limit passed while waiting for the origin, or for a place among the requests to it.
        case timedOut
        /// The fetch was cancelled.
        case cancelled
        /// A body is over the limit that the caller gave.
        case tooLarge
    }

    /// What went wrong.
    public let kind: Kind
    /// The URL asked for.
    public let url: String
    /// What happened, in words; names the URL.
    public let message: String
    /// What the transport said, for ``Kind/origin``, ``Kind/overloaded`` and ``Kind/timedOut``.
    public let transport: TransportError?

    /// Makes an error.
    public init(_ kind: Kind, url: String, _ message: String, transport: TransportError? = nil) {
        self.kind = kind
        self.url = url
        self.message = message
        self.transport = transport
    }

    /// The message.
    public var description: String { message }
}

extension FetchError {
    /// The error of a fetch that the transport failed.
    init(_ error: TransportError, _ url: String) {
        let kind: Kind
        switch error.kind {
        case .overloaded: kind = .overloaded
        case .timedOut: kind = .timedOut
        case .cancelled: kind = .cancelled
        case .invalidRequest: kind = .invalidURL
        default: kind = .origin
        }
        self.init(kind, url: url, "\(url) could not be loaded: \(error.message)", transport: error)
    }
}
