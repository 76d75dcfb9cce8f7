/// How far a client comes between the looks at its connection. What it has moved since the look before last counts, so
/// that a client is not taken for a stalled one right after a look.
struct ClientProgress {
    /// Bytes that it moved between the last two looks, and by the last.
    private var last: Int64 = 0
    private var movedAtLastLook: Int64 = 0

    /// A look at the connection.
    /// - Parameter moved: bytes that the client has taken and sent in all.
    mutating func look(moved: Int64) { (last, movedAtLastLook) = (moved - movedAtLastLook, moved) }

    /// Bytes that the client has moved since the look before last.
    /// - Parameter moved: bytes that it has taken and sent in all; nil if that is not known any more.
    func bytes(moved: Int64?) -> Int64 { last + (moved.map { $0 - movedAtLastLook } ?? 0) }
}
