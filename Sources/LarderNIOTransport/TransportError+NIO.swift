import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix
import NIOSSL

extension TransportError {
    static func invalidRequest(_ message: String) -> TransportError {
        TransportError(.invalidRequest, mayHaveBeenSeen: false, message)
    }

    static func cancelled(_ endpoint: NIOTransport.Endpoint, mayHaveBeenSeen: Bool) -> TransportError {
        TransportError(.cancelled, mayHaveBeenSeen: mayHaveBeenSeen, "the request to \(endpoint) was cancelled")
    }

    /// A connection that did not come to be.
    static func cannotConnect(_ endpoint: NIOTransport.Endpoint, _ error: any Error) -> TransportError {
        if let error = error as? TransportError { return error }
        if case ChannelError.connectTimeout = error {
            return TransportError(.timedOut, mayHaveBeenSeen: false, "\(endpoint) did not take a connection in time")
        }
        return TransportError(
            .cannotConnect, mayHaveBeenSeen: false, "cannot connect to \(endpoint): \(describe(error))")
    }

    /// A response that is not as it should be.
    static func malformed(_ endpoint: NIOTransport.Endpoint, _ error: WireError) -> TransportError {
        switch error {
        case .headTooLarge, .tooManyFields, .trailersTooLarge:
            TransportError(.responseTooLarge, mayHaveBeenSeen: true, "the response of \(endpoint): \(error)")
        default:
            TransportError(.malformedResponse, mayHaveBeenSeen: true, "the response of \(endpoint): \(error)")
        }
    }

    /// What the system or the library says, without the names of types around it.
    static func describe(_ error: any Error) -> String {
        guard let error = error as? NIOConnectionError else { return "\(error)" }
        if let first = error.connectionErrors.first { return "\(first.error)" }
        if let lookup = error.dnsAError ?? error.dnsAAAAError { return "the name has no address (\(lookup))" }
        return "the name has no address"
    }
}
