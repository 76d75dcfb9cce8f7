import NIOCore

/// What connections that were closed for their memory have still to let go of.
///
/// It follows what works for each of them. The sum of all memory would not tell: others take more in the meantime.
struct ClosedConnections: Sendable {
    /// One of them.
    struct Connection: Sendable {
        /// About what it had still to let go of when it was closed.
        let bytes: Int
        let time: NIODeadline
        /// What works for it, until it has.
        let work: [Weak]
    }

    // SAFETY: a weak reference may be read on any thread, and is not changed.
    struct Weak: @unchecked Sendable {
        weak var object: AnyObject?
    }

    /// How long one may take. On a machine that is busy that is long, and to close others for it would punish those
    /// that hold little.
    private static let patience = TimeAmount.milliseconds(500)

    private var connections: [Connection] = []

    mutating func add(_ closed: [Connection]) { connections += closed }

    /// Bytes that are about to be let go of.
    mutating func bytes(at now: NIODeadline) -> Int {
        connections.removeAll { connection in
            now - connection.time >= Self.patience || connection.work.allSatisfy { $0.object == nil }
        }
        return connections.reduce(0) { $0 + $1.bytes }
    }
}
