import LarderHTTP
import LarderServer

/// What clients get where the origin gave no answer.
extension CacheService {
    /// The answer to a client when the origin gave none. RFC 9110 sections 15.6.3 and 15.6.5.
    static func answer(to error: FetchError) -> OwnAnswer {
        switch error.code {
        case .overloaded: .retryLater(503, "Too many requests wait for the origin.")
        case .timedOut: OwnAnswer(504, "The origin did not answer in time.")
        case .notCached: .notStored
        case .invalidURL: OwnAnswer(400, "The target of the request is not a valid URL.")
        case .unknownPolicy, .policyFailed: OwnAnswer(500, "A policy of the cache failed.")
        case .tooLarge: OwnAnswer(502, "The response of the origin is over a limit.")
        case .cancelled: OwnAnswer(503, "The request was cancelled.")
        default: originAnswer(error.transport)
        }
    }

    /// Without names and addresses, which are nothing that clients should know.
    private static func originAnswer(_ error: TransportError?) -> OwnAnswer {
        switch error?.code {
        case .cannotConnect:
            switch error?.connectFailure {
            case .nameNotFound: OwnAnswer(502, "The origin cannot be reached: its name has no address.")
            case .refused: OwnAnswer(502, "The origin cannot be reached: it refuses connections.")
            case .tls: OwnAnswer(502, "The origin cannot be reached: TLS failed.")
            default: OwnAnswer(502, "The origin cannot be reached.")
            }
        case .malformedResponse: OwnAnswer(502, "The origin's response is not valid HTTP.")
        case .responseTooLarge: OwnAnswer(502, "The response of the origin is over a limit.")
        case .closed, .incompleteResponse:
            OwnAnswer(502, "The origin closed the connection before its response was complete.")
        default: OwnAnswer(502, "The origin gave no valid response.")
        }
    }
}
