import NIOSSL

/// What a TLS library says, in words: without its types, numbers and source files.
enum TLSFailure {
    static func text(_ error: any Error) -> String {
        switch error {
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            return "TLS failed: the certificate is for another host"
        case NIOSSLError.handshakeFailed(let error), NIOSSLError.shutdownFailed(let error): return text(error)
        case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate:
            return "TLS failed: the certificate cannot be checked"
        case NIOSSLError.uncleanShutdown: return "the connection was closed without the end that TLS asks for"
        case let error as BoringSSLError:
            switch error {
            case .sslError(let stack), .unknownError(let stack), .invalidSNIName(let stack),
                .failedToSetALPN(let stack):
                return "TLS failed: " + (stack.first.map(reason) ?? "no reason was given")
            default: return "TLS failed: the connection was closed"
            }
        default: return "TLS failed"
        }
    }

    /// `error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at .../handshake.cc:320` is how the
    /// library describes one: the name behind the last colon before the file counts.
    private static func reason(_ error: BoringSSLInternalError) -> String {
        if error == .eofDuringHandshake { return "the other side closed the connection" }
        let text = error.description
        let name = text.firstRange(of: " at ").map { text[..<$0.lowerBound] } ?? text[...]
        let reason = name.split(separator: ":").last.map(String.init) ?? text
        switch reason {
        case "CERTIFICATE_VERIFY_FAILED": return "the certificate is not trusted"
        case "WRONG_VERSION_NUMBER", "HTTP_REQUEST": return "the other side does not speak TLS"
        case "SSLV3_ALERT_HANDSHAKE_FAILURE", "HANDSHAKE_FAILURE_ON_CLIENT_HELLO", "UNSUPPORTED_PROTOCOL":
            return "the two sides have no version or cipher in common"
        default: return reason.lowercased().split(separator: "_").joined(separator: " ")
        }
    }
}
