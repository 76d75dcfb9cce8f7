import HTTPTypes

/// What is done about a request on the event loop of its client, without a task. On that event loop only.
package protocol RelayedWork: AnyObject, Sendable {
    /// Runs something on the event loop: from any thread.
    typealias Executing = @Sendable (@escaping @Sendable () -> Void) -> Void

    /// Begins; once.
    /// - Parameter receive: called on the event loop, perhaps before this returns; not after ``cancel()``.
    func start(_ execute: @escaping Executing, _ receive: @escaping @Sendable (RelayedEvent) -> Void)

    /// What a loader continues, instead of ``start(_:_:)``.
    func unstarted() -> BegunLoad

    /// The client wants nothing more of it.
    func cancel()
}

/// What the work on a request brings; all but interim responses end it.
package enum RelayedEvent: Sendable {
    case informational(HTTPResponse)
    case response(FetchResponse)
    case failure(FetchError)
    /// It is to be loaded.
    case load(BegunLoad)
}
