/// The last streams of a kind. Frames may still come for a stream that was reset (RFC 9113 section 5.1).
struct RecentStreams {
    private let limit: Int
    private var ids: [UInt32] = []
    private var next = 0

    /// - Parameter limit: how many are remembered.
    init(_ limit: Int) { self.limit = limit }

    mutating func append(_ id: Int) {
        if ids.count < limit {
            ids.append(UInt32(id))
        } else {
            ids[next] = UInt32(id)
            next = (next + 1) % limit
        }
    }

    func contains(_ id: Int) -> Bool { ids.contains(UInt32(id)) }
}
