/// Why a gateway cannot start.
public struct GatewayError: Error, Sendable, CustomStringConvertible {
    /// What can be done about it.
    public enum Code: String, Sendable, Hashable {
        /// The configuration contradicts itself or has a value that makes no sense.
        case invalidArgument
        /// An address cannot be listened on.
        case cannotListen
        /// A certificate or key cannot be used.
        case tls
        /// A file cannot be opened.
        case io
    }

    /// What can be done about it.
    public let code: Code
    /// What is wrong, where, and how to mend it.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
