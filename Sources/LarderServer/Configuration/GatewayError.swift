import NIOCore
import SystemPackage

/// Why a gateway cannot start.
public struct GatewayError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure, which decides how to fix it.
    public struct Code: Sendable, Hashable, CaseIterable, CustomStringConvertible {
        private enum Value: String, Sendable, CaseIterable {
            case invalidArgument, cannotListen, tls, io
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// The configuration contradicts itself or has a value that makes no sense.
        public static let invalidArgument = Code(.invalidArgument)
        /// The gateway cannot listen on an address.
        public static let cannotListen = Code(.cannotListen)
        /// A certificate or key cannot be used.
        public static let tls = Code(.tls)
        /// A file cannot be opened.
        public static let io = Code(.io)

        /// All codes of this version. Later versions may have more.
        public static var allCases: [Code] { Value.allCases.map { Code($0) } }

        /// The name of the code.
        public var description: String { value.rawValue }
    }

    /// The kind of failure.
    public let code: Code
    /// Describes the failure and its place, the words of its cause, and how to fix it.
    public let message: String
    /// The affected file, if there is one.
    public let path: FilePath?
    /// The affected address, such as `127.0.0.1:8080`, if there is one.
    public let address: String?
    /// The underlying error: an `Errno` if a system call failed.
    public let cause: (any Error)?

    package init(
        _ code: Code, _ message: String, path: FilePath? = nil, address: String? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.address = address
        self.cause = cause
    }

    /// Code and message.
    public var description: String { "\(code): \(message)" }
}

extension GatewayError {
    /// Describes an address that the gateway cannot listen on, in the words of the system and without the library's
    /// names for its calls.
    package static func cannotListen(_ host: String, _ port: Int, _ error: any Error) -> GatewayError {
        let text = "cannot listen on \(host) port \(port): "
        let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        switch error {
        case let error as IOError:
            let cause = Errno(rawValue: error.errnoCode)
            return GatewayError(.cannotListen, text + "\(cause)", address: address, cause: cause)
        case is SocketAddressError.UnknownHost:
            return GatewayError(.cannotListen, text + "the name has no address", address: address, cause: error)
        default:
            return GatewayError(.cannotListen, text + "\(error)", address: address, cause: error)
        }
    }
}
