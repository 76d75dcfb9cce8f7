import HTTPTypes

/// A request on its way to the next hop, and the facts that the cache needs when the answer arrives.
public struct ForwardedRequest: Sendable, Hashable {
    /// The purpose of the request.
    public enum Purpose: Sendable, Hashable {
        /// The client's request, unchanged.
        case forward
        /// To validate a stored response: the cache added its own preconditions (RFC 9111 section 4.3.1).
        case validate
        /// To fetch the bytes that a stored part lacks (RFC 9111 section 3.3).
        case complete
    }

    /// The client's request. For a validation in the background: the request that the stale response answered.
    public var request: HTTPRequest
    /// The request to send. The joining layer removes the fields that belong to one connection.
    public var sent: HTTPRequest
    /// Its purpose.
    public var purpose: Purpose
    /// The reason for forwarding it.
    public var reason: CacheStatus.ForwardReason
    /// The position of the stored response that would have been used; nil if there is none.
    public var selected: Int?
    /// The positions of all stored responses that could have been chosen (RFC 9111 section 4.3.4), the selected one
    /// included.
    public var candidates: [Int]
    /// True if the request has content.
    public var hasContent: Bool

    /// Makes a forwarded request. Callers that forward a request without asking
    /// ``CacheRules/reuse(_:hasContent:stored:now:isDisconnected:)`` first make one with the reason.
    /// - Parameters:
    ///   - request: the client's request.
    ///   - sent: the request to send. Nil (the default): the client's.
    ///   - purpose: its purpose. Default: to forward it.
    ///   - reason: the reason for forwarding it.
    ///   - selected: the position of the stored response that would have been used. Default: none.
    ///   - candidates: the positions of all stored responses that could have been chosen. Default: none.
    ///   - hasContent: true if the request has content. Default: false.
    public init(
        request: HTTPRequest, sent: HTTPRequest? = nil, purpose: Purpose = .forward, reason: CacheStatus.ForwardReason,
        selected: Int? = nil,
        candidates: [Int] = [], hasContent: Bool = false
    ) {
        self.request = request
        self.sent = sent ?? request
        self.purpose = purpose
        self.reason = reason
        self.selected = selected
        self.candidates = candidates
        self.hasContent = hasContent
    }
}
