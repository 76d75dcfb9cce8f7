import HTTPCaching
import HTTPTypes

/// The answer that the store alone can give to a request.
package enum LocalAnswer: Sendable {
    /// The answer: from the store, or a refusal.
    case response(FetchResponse)
    /// The origin has to be asked: pass it to ``HTTPCache/load(_:body:onInformational:)``.
    case load(LoadRequest)
}

/// What the store alone can answer, and what the cache has to do in addition.
struct LocalResult: Sendable {
    var answer: LocalAnswer
    /// A validation in the background.
    var refresh: Refresh?

    /// A stored response that is served stale while it is validated (RFC 5861 section 3).
    struct Refresh: Sendable {
        var forwardedRequest: ForwardedRequest
        var question: Question
        var primary: String
        var found: [ResponseStore.Found]
    }
}

/// A request that the store cannot answer, with the stored responses found for it.
package struct LoadRequest: Sendable {
    /// The client's request.
    package internal(set) var request: HTTPRequest
    /// The request that the rules see; another than the client's where the key policy makes one of a kind that they
    /// know.
    var subject: HTTPRequest
    /// The primary key; nil for a request that nothing is stored for.
    var primary: String?
    /// What is stored under the key.
    var found: [ResponseStore.Found]
    /// The request to send, and why.
    var forwardedRequest: ForwardedRequest
    /// How this fetch wants it.
    var plan: FetchPlan
    /// What an invalidation since then would have changed.
    var generation: UInt32
    /// See ``Question/search``.
    var search: SearchScope?
    /// Set where the store could not be asked without waiting, and nothing is decided yet.
    var undecided: Question?
    /// What it continues, if it was begun without a task.
    var begun: BegunLoad?

    init(_ question: Question, found: [ResponseStore.Found], forwardedRequest: ForwardedRequest) {
        request = question.request
        subject = question.subject
        primary = question.primary
        self.found = found
        self.forwardedRequest = forwardedRequest
        plan = question.plan
        generation = question.generation
        search = question.search
    }

    /// - Parameter begun: by the same request.
    mutating func take(_ begun: BegunLoad) {
        self.begun = begun
        guard let led else { return }
        // What was invalidated since the origin was asked makes it one that is not stored.
        generation = led.load.generation
        search?.generation = led.searchGeneration
    }

    /// The load that it continues.
    var led: RelayedLoad? { if case .led(let load)? = begun { load } else { nil } }

    init(undecided question: Question) {
        self.init(
            question, found: [],
            forwardedRequest: ForwardedRequest(
                request: question.subject, reason: .miss, hasContent: question.hasContent))
        undecided = question
    }
}
