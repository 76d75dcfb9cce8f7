/// The last streams of a kind. Frames may still come for a stream that was reset (RFC 9113 section 5.1).
struct RecentStreams {
    private static let count = 256
    private var ids: [UInt32] = []
    private var next = 0

    mutating func append(_ id: Int) {
        if ids.count < Self.count {
            ids.append(UInt32(id))
        } else {
            ids[next] = UInt32(id)
            next = (next + 1) % Self.count
        }
    }

    func contains(_ id: Int) -> Bool { ids.contains(UInt32(id)) }
}
