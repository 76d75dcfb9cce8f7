import Locks

/// What a request has begun without a task, for a ``Loader`` to continue.
package enum BegunLoad: Sendable {
    /// The load that it is to others.
    case led(RelayedLoad)
    /// It waits for the load of another.
    case followed(FollowedLoad)
}

/// A load that another request leads. It gives it out once: a request that has its answer must not hold that of
/// another.
package final class FollowedLoad: Sendable {
    private let leading: Mutex<Load?>

    init(_ leading: Load) { self.leading = Mutex(leading) }

    func take() -> Load? {
        leading.withLock { leading in
            defer { leading = nil }
            return leading
        }
    }
}
