import NIOCore

/// Since when a client has taken no byte of the content that waits for it.
///
/// That content waits for room does not tell: the system has room again only when a good part of its buffer is empty,
/// and that takes a slow client seconds. So the looks compare what its system has not acknowledged.
struct Stall {
    private var unacknowledged: Int
    private(set) var since: NIODeadline

    /// - Parameter unacknowledged: see ``SendQueue/unacknowledged(_:)``.
    init(_ unacknowledged: Int, at now: NIODeadline) {
        self.unacknowledged = unacknowledged
        since = now
    }

    mutating func look(_ unacknowledged: Int, at now: NIODeadline) {
        if unacknowledged == self.unacknowledged { return }
        self.unacknowledged = unacknowledged
        since = now
    }
}
