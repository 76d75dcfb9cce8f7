import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension TransportError {
    static func invalidRequest(_ message: String) -> TransportError {
        TransportError(.invalidRequest, mayHaveBeenSeen: false, message)
    }

    static func cancelled(_ endpoint: NIOTransport.Endpoint, mayHaveBeenSeen: Bool) -> TransportError {
        TransportError(
            .cancelled, mayHaveBeenSeen: mayHaveBeenSeen, endpoint: "\(endpoint)",
            "the request to \(endpoint) was cancelled")
    }

    /// A connection that did not come to be.
    static func cannotConnect(_ endpoint: NIOTransport.Endpoint, _ error: any Error) -> TransportError {
        if let error = error as? TransportError { return error }
        if case ChannelError.connectTimeout = error {
            return TransportError(
                .timedOut, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
                "\(endpoint) did not accept a connection in time", cause: error)
        }
        let (failure, text) = connectFailure(error)
        var result = TransportError(
            .cannotConnect, mayHaveBeenSeen: false, endpoint: "\(endpoint)", "cannot connect to \(endpoint): \(text)",
            cause: error)
        result.connectFailure = failure
        return result
    }

    /// A response that is not as it should be.
    static func malformed(_ endpoint: NIOTransport.Endpoint, _ error: WireError) -> TransportError {
        switch error {
        case .headTooLarge, .tooManyFields, .trailersTooLarge:
            TransportError(
                .responseTooLarge, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "the response of \(endpoint): \(error)", cause: error)
        default:
            TransportError(
                .malformedResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "the response of \(endpoint): \(error)", cause: error)
        }
    }

    /// What the system or the library says, without the names of types around it.
    static func describe(_ error: any Error) -> String { connectFailure(error).1 }

    private static func connectFailure(_ error: any Error) -> (ConnectFailure?, String) {
        switch error {
        case let error as NIOConnectionError:
            if let first = error.connectionErrors.first { return connectFailure(first.error) }
            return (.nameNotFound, "the name '\(error.host)' has no address")
        case is SocketAddressError.UnknownHost: return (.nameNotFound, "the name has no address")
        case let error as IOError:
            let isRefused = error.errnoCode == ECONNREFUSED || error.errnoCode == ECONNRESET
            return (isRefused ? .refused : .unreachable, String(cString: strerror(error.errnoCode)))
        case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError: return (.tls, TLSFailure.text(error))
        default: return (nil, "\(error)")
        }
    }
}
