import NIOCore
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

extension GatewayError {
    /// An address that cannot be listened on, in the words of the system: without the library's names of its calls.
    static func cannotListen(_ host: String, _ port: Int, _ error: any Error) -> GatewayError {
        let text = "cannot listen on \(host) port \(port): "
        switch error {
        case let error as IOError:
            let cause = Errno(rawValue: error.errnoCode)
            return GatewayError(.cannotListen, text + "\(cause)", systemError: cause)
        case is SocketAddressError.UnknownHost:
            return GatewayError(.cannotListen, text + "the name has no address")
        default:
            return GatewayError(.cannotListen, text + "\(error)")
        }
    }
}
