/// The reason that a fetch has no answer. A miss is not an error; a miss that may not be loaded is.
public struct FetchError: Error, Sendable, CustomStringConvertible {
    /// The kind of error, by what the caller can do about it.
    public struct Code: Sendable, Hashable, CaseIterable, CustomStringConvertible {
        private enum Value: String, Sendable, CaseIterable {
            case invalidURL, notCached, unknownPolicy, policyFailed, origin, overloaded, timedOut, cancelled, tooLarge
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// The URL cannot be parsed, or is neither http nor https.
        public static let invalidURL = Code(.invalidURL)
        /// Nothing usable is stored, and the policy or the offline mode forbids loading.
        public static let notCached = Code(.notCached)
        /// No policy is registered under the id.
        public static let unknownPolicy = Code(.unknownPolicy)
        /// A policy of the caller failed.
        public static let policyFailed = Code(.policyFailed)
        /// The origin cannot be reached or gave no valid answer: see ``FetchError/transport``.
        public static let origin = Code(.origin)
        /// Too many requests already wait for the origin; this one was not sent. Trying later may help.
        public static let overloaded = Code(.overloaded)
        /// A time limit passed while waiting for the origin, or for a place among the requests to it.
        public static let timedOut = Code(.timedOut)
        /// The fetch was cancelled.
        public static let cancelled = Code(.cancelled)
        /// A body is over the limit that the caller gave.
        public static let tooLarge = Code(.tooLarge)

        /// All codes of this version. Later versions may have more.
        public static var allCases: [Code] { Value.allCases.map { Code($0) } }

        /// The name of the code.
        public var description: String { value.rawValue }
    }

    /// The kind of error, by what the caller can do about it.
    public let code: Code
    /// The URL asked for.
    public let url: String
    /// The error in words, with the URL and the message of the cause.
    public let message: String
    /// The underlying error: a ``TransportError`` for ``Code/origin``, ``Code/overloaded`` and ``Code/timedOut``, the
    /// error that a policy threw for ``Code/policyFailed``.
    public let cause: (any Error)?

    /// The error of the transport; nil if something other than the transport failed.
    public var transport: TransportError? { code == .policyFailed ? nil : cause as? TransportError }

    /// Makes an error.
    /// - Parameters:
    ///   - code: the kind of error.
    ///   - url: the URL asked for.
    ///   - message: the error in words; names the URL.
    ///   - cause: the error underneath. Default: none.
    public init(_ code: Code, url: String, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.url = url
        self.message = message
        self.cause = cause
    }

    /// Code and message.
    public var description: String { "\(code): \(message)" }
}

extension FetchError {
    /// The error of a fetch that the transport failed.
    init(_ error: TransportError, _ url: String) {
        let code: Code
        switch error.code {
        case .overloaded: code = .overloaded
        case .timedOut: code = .timedOut
        case .cancelled: code = .cancelled
        case .invalidRequest: code = .invalidURL
        default: code = .origin
        }
        self.init(code, url: url, "\(url) could not be loaded: \(error.message)", cause: error)
    }
}
