import HTTPCaching
import HTTPTypes

/// A request that the store cannot answer, with what was found for it.
package struct PendingLoad: Sendable {
    /// The client's request.
    var request: HTTPRequest
    /// The request that the rules see; another than the client's where the key policy makes one of a kind that they
    /// know.
    var subject: HTTPRequest
    /// The primary key; nil for a request that nothing is stored for.
    var primary: String?
    /// What is stored under the key.
    var found: [Shelf.Found]
    /// The request to send, and why.
    var exchange: Exchange
    /// How this fetch wants it.
    var plan: FetchPlan
    /// What an invalidation since then would have changed.
    var generation: UInt32
    /// See ``Question/search``.
    var search: SearchScope?
    /// Set where the store could not be asked without waiting, and nothing is decided yet.
    var undecided: Question?

    init(_ question: Question, found: [Shelf.Found], exchange: Exchange) {
        request = question.request
        subject = question.subject
        primary = question.primary
        self.found = found
        self.exchange = exchange
        plan = question.plan
        generation = question.generation
        search = question.search
    }

    init(undecided question: Question) {
        self.init(
            question, found: [],
            exchange: Exchange(request: question.subject, reason: .miss, hasContent: question.hasContent))
        undecided = question
    }
}
