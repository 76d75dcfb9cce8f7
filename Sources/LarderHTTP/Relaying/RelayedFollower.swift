import HTTPCaching
import HTTPTypes

/// A request that waits for what another one brings. On one event loop only.
///
/// What it does not take as it comes is for a ``Loader``: responses that depend on fields of the request, and
/// failures.
// SAFETY: what changes is touched on the event loop that `start` is called on.
package final class RelayedFollower: RelayedWork, @unchecked Sendable {
    private let leading: Load
    private let builder: AnswerBuilder
    private let request: HTTPRequest
    private var receive: (@Sendable (RelayedEvent) -> Void)?
    /// Its place among those who wait.
    private var id: Int?

    /// - Parameter request: the target, without fields.
    init(of leading: Load, _ builder: AnswerBuilder, _ request: HTTPRequest) {
        self.leading = leading
        self.builder = builder
        self.request = request
    }

    package func start(_ execute: @escaping Executing, _ receive: @escaping @Sendable (RelayedEvent) -> Void) {
        self.receive = receive
        id = leading.join { result in execute { self.take(result) } }
    }

    package func unstarted() -> BegunLoad { .followed(FollowedLoad(leading)) }

    package func cancel() {
        receive = nil
        if let id { leading.leave(id) }
    }

    private func take(_ result: Result<Load.Arrival, FetchError>) {
        guard let receive else { return }
        self.receive = nil
        if case .success(let arrival) = result, let shared = arrival.shared, shared.new.selecting.fields.isEmpty,
            let response = builder.joined(shared, request, ForwardedRequest(request: request, reason: .uriMiss))
        {
            receive(.response(response))
        } else {
            receive(.load(unstarted()))
        }
    }
}
