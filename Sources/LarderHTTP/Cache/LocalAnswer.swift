import HTTPCaching
import HTTPTypes

/// What the store alone can say to a request.
package enum LocalAnswer: Sendable {
    /// The answer: from the store, or a refusal.
    case response(FetchResponse)
    /// The origin has to be asked: pass it to ``HTTPCache/load(_:body:onInformational:)``.
    case load(PendingLoad)
}
