import HTTPTypes

/// What to do with a request, given what is stored for its URI.
public enum ReuseDecision: Sendable, Hashable {
    /// Answer with a stored response. Where ``ServedResponse/background`` is set, validate afterwards.
    case serve(ServedResponse)
    /// Send the exchange's request: the client's own, a validation, or one for missing bytes (see
    /// ``Exchange/purpose-swift.property``).
    case forward(Exchange)
    /// Answer 504 (Gateway Timeout): the request says `only-if-cached` (RFC 9111 section 5.2.1.7), or the cache is
    /// disconnected and has nothing it may serve.
    case refuse(HTTPResponse)
}
