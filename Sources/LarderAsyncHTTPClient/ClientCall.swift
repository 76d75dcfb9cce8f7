import AsyncHTTPClient
import Logging

/// What a call of ``CachingHTTPClient`` has for its transport that a cache does not know.
///
/// A cache sends each request in a task that it starts during the call, and such a task inherits the task-local values
/// of its caller. A request that others join is sent with the values of the first.
struct ClientCall: Sendable {
    @TaskLocal static var current: ClientCall?

    /// The content as the client knows it: its length, and whether it can be read again, are not public.
    var content: HTTPClientRequest.Body?
    /// The logger of the call.
    var logger: Logger?
}
