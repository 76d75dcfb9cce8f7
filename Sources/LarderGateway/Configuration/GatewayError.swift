import SystemPackage

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
    /// The file concerned, where there is one.
    public let path: FilePath?
    /// What the system said, where a system call failed.
    public let systemError: Errno?

    init(_ code: Code, _ message: String, path: FilePath? = nil, systemError: Errno? = nil) {
        self.code = code
        self.message = message
        self.path = path
        self.systemError = systemError
    }

    /// The message.
    public var description: String { message }
}
