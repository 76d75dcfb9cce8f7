import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension TransportError {
    /// The error of a request that URLSession failed.
    ///
    /// - Parameter afterHead: whether the head of the response had arrived.
    init(_ error: any Error, _ endpoint: String, afterHead: Bool) {
        let urlError = error as? URLError
        let text = (error as NSError).localizedDescription
        func make(_ code: Code, seen: Bool, _ failure: ConnectFailure? = nil) -> TransportError {
            var result = TransportError(
                code, mayHaveBeenSeen: seen, endpoint: endpoint, "\(endpoint): \(text)", cause: error)
            result.connectFailure = failure
            return result
        }
        switch urlError?.code {
        case .timedOut?: self = make(.timedOut, seen: true)
        case .cancelled?: self = make(.cancelled, seen: true)
        case .badURL?, .unsupportedURL?: self = make(.invalidRequest, seen: false)
        case .cannotFindHost?, .dnsLookupFailed?: self = make(.cannotConnect, seen: false, .nameNotFound)
        case .cannotConnectToHost?: self = make(.cannotConnect, seen: false, .refused)
        case .notConnectedToInternet?, .internationalRoamingOff?, .dataNotAllowed?:
            self = make(.cannotConnect, seen: false, .unreachable)
        case .secureConnectionFailed?, .serverCertificateHasBadDate?, .serverCertificateUntrusted?,
            .serverCertificateHasUnknownRoot?, .serverCertificateNotYetValid?, .clientCertificateRejected?,
            .clientCertificateRequired?:
            self = make(.cannotConnect, seen: false, .tls)
        case .badServerResponse?, .cannotParseResponse?, .cannotDecodeRawData?, .cannotDecodeContentData?:
            self = make(.malformedResponse, seen: true)
        case .dataLengthExceedsMaximum?: self = make(.responseTooLarge, seen: true)
        default: self = make(afterHead ? .incompleteResponse : .closed, seen: true)
        }
    }
}

extension URLError {
    /// The error of a session for a fetch that has no answer. Where URLSession itself failed, its own error.
    init(_ error: FetchError, _ url: URL?) {
        if let original = error.transport?.cause as? URLError {
            self = original
            return
        }
        let code: URLError.Code
        switch error.code {
        case .invalidURL: code = .badURL
        case .notCached: code = .resourceUnavailable
        case .timedOut: code = .timedOut
        case .cancelled: code = .cancelled
        case .tooLarge: code = .dataLengthExceedsMaximum
        case .origin: code = Self.code(error.transport)
        case .overloaded: code = .cannotConnectToHost
        default: code = .unknown
        }
        self.init(code, url, error.message, cause: error)
    }

    private static func code(_ error: TransportError?) -> URLError.Code {
        switch error?.code {
        case .cannotConnect?:
            switch error?.connectFailure {
            case .nameNotFound?: return .cannotFindHost
            case .tls?: return .secureConnectionFailed
            default: return .cannotConnectToHost
            }
        case .malformedResponse?: return .badServerResponse
        case .responseTooLarge?: return .dataLengthExceedsMaximum
        case .requestBodyFailed?: return .requestBodyStreamExhausted
        case .closed?, .incompleteResponse?: return .networkConnectionLost
        default: return .unknown
        }
    }

    /// An error with a description for people.
    init(_ code: URLError.Code, _ url: URL?, _ message: String, cause: (any Error)? = nil) {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message]
        info[NSURLErrorFailingURLErrorKey] = url
        info[NSUnderlyingErrorKey] = cause
        self.init(code, userInfo: info)
    }
}
