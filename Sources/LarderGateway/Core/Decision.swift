import HTTPTypes
import LarderHTTP

/// What is done about a request.
enum Decision: Sendable {
    /// Answered by the gateway itself.
    case own(OwnAnswer)
    /// Answered from the store.
    case stored(FetchResponse)
    /// The origin has to be asked.
    case load(LoadRequest)
    /// A tunnel to a host.
    case tunnel(host: String, port: Int)
    /// Stored responses are removed, which may wait for the disk.
    case purge(PurgeOrder)
    /// A service answers, in a task.
    case work(@Sendable (RequestBody?) async -> ServiceAnswer)
}

/// What a PURGE removes.
enum PurgeOrder: Sendable {
    case url(String)
    case prefix(String)
    case tags([String])
    case group(String, origin: String)
}
