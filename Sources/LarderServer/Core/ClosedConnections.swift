import NIOCore

/// Memory that connections had when they were closed for it, until it is released.
///
/// It follows what holds the memory. The sum of all memory would not tell: others take more in the meantime.
struct ClosedConnections: Sendable {
    /// What brings content from an origin to a connection.
    struct Source: Sendable {
        /// About as much as it takes up, in bytes.
        let bytes: Int
        /// When it began to.
        let since: NIODeadline
        /// Several connections may have the same one.
        weak let holder: (any AnyObject & Sendable)?
        /// Since when the client has taken no byte that waits for it; nil while none waits.
        var stalledSince: NIODeadline?
    }

    /// The time that a release may take: it is long on a busy machine, and closing others would not speed it up.
    private static let patience = TimeAmount.milliseconds(500)

    private var closed: [(time: NIODeadline, source: Source)] = []

    /// Follows the sources of connections that were closed.
    mutating func add(_ sources: [Source], at now: NIODeadline) {
        prune(at: now)
        closed += sources.map { (now, $0) }
    }

    /// Bytes that are not released.
    mutating func bytes(at now: NIODeadline) -> Int {
        prune(at: now)
        var known: Set<ObjectIdentifier> = []
        return closed.reduce(0) { sum, closed in
            guard let holder = closed.source.holder, known.insert(ObjectIdentifier(holder)).inserted else { return sum }
            return sum + closed.source.bytes
        }
    }

    private mutating func prune(at now: NIODeadline) {
        closed.removeAll { now - $0.time >= Self.patience || $0.source.holder == nil }
    }
}
