import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import Locks

/// The handler of one request, as the origin of a cache.
///
/// A cache sends requests in tasks of its own, which outlive the request that started them where others wait for the
/// same. A handler, on the other hand, may be called only while its request waits. So the request waits with
/// ``close()`` until the handler has returned, although its own client may have left; and from then on nothing calls
/// it.
///
/// The handler runs in the cache's task: it is cancelled when the cache gives the load up, when the last request that
/// waits for it is, and not with the one request it was called for.
final class HandlerCall: Sendable {
    /// Cache tasks inherit it from the request that starts them.
    @TaskLocal static var current: HandlerCall?

    /// The request was over before its handler was called.
    struct Gone: Error {}

    private struct State {
        var handler: Handler?
        var isRunning = false
        var closing: CheckedContinuation<Void, Never>?
        var refusal: (any Error)?
    }

    let request: Request
    let lifetime: Duration?
    private let state: Mutex<State>

    init<Context: RequestContext>(
        _ request: Request, _ context: Context, _ lifetime: Duration?,
        _ next: @escaping (Request, Context) async throws -> Response
    ) {
        self.request = request
        self.lifetime = lifetime
        state = Mutex(State(handler: Handler { try await next($0, context) }))
    }

    /// The error with which the handler refused the request: one for its client, not a failure.
    var refusal: (any Error)? { state.withLock { $0.refusal } }

    /// Calls the handler. At most once at a time; the cache sends one request after the other.
    func run(_ request: Request) async throws -> Response {
        let isOpen = state.withLock { state in
            if state.handler == nil || state.isRunning { return false }
            state.isRunning = true
            state.refusal = nil
            return true
        }
        guard isOpen else { throw Gone() }
        let result: Result<Response, any Error>
        do {
            result = .success(try await call(request))
        } catch {
            result = .failure(error)
        }
        let closing = state.withLock { state in
            state.isRunning = false
            if state.closing != nil { state.handler = nil }
            defer { state.closing = nil }
            return state.closing
        }
        closing?.resume()
        return try result.get()
    }

    /// A function of its own, so that no reference to the handler is left when it returns: one that outlives the
    /// request would end the program.
    private func call(_ request: Request) async throws -> Response {
        guard let handler = state.withLock({ $0.handler }) else { throw Gone() }
        return try await handler.next(request)
    }

    /// Notes an error that is an answer, such as 404, and gives its status.
    func refuse(_ error: any HTTPResponseError) { state.withLock { $0.refusal = error } }

    /// Returns when the handler does not run and will not be called again.
    func close() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if !state.isRunning {
                    state.handler = nil
                    return true
                }
                state.closing = continuation
                return false
            }
            if isIdle { continuation.resume() }
        }
    }
}

/// The rest of the middleware chain, in a form that another task can call.
private struct Handler: @unchecked Sendable {
    // SAFETY: called by one task at a time (HandlerCall.isRunning), while the request whose chain it is does nothing
    // but wait for the result (HandlerCall.close).
    let next: (Request) async throws -> Response
}
