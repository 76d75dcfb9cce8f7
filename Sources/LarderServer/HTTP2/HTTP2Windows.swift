/// How many bytes of content a client lets a connection and its streams send (RFC 9113 section 5.2).
///
/// swift-nio-http2 keeps in memory what is written beyond a window, and does not tell how large the windows are. So
/// they are counted here as well, from the same frames, and nothing is written before there is a window for it.
struct HTTP2Windows {
    /// What the connection may still send.
    private(set) var connection: Int64 = 65_535
    /// What a new stream may send.
    private var initial: Int64 = 65_535
    /// What a stream may send beyond the initial window, or less than it. A stream without an entry may send just that.
    private var balances: [Int: Int64] = [:]

    /// What a stream may still send; below zero where the client has taken back a part of the window.
    func stream(_ id: Int) -> Int64 { initial + balances[id, default: 0] }

    /// WINDOW_UPDATE; stream 0 is the connection.
    private mutating func grow(_ id: Int, by count: Int64) {
        if id == 0 { connection += count } else { balances[id, default: 0] += count }
    }

    /// A frame of the client.
    mutating func received(_ frame: HTTP2FrameScanner.Frame) {
        switch frame.type {
        case .windowUpdate:
            guard let number = frame.number(at: 0) else { return }
            grow(frame.stream, by: Int64(number & 0x7FFF_FFFF))
        case .settings where frame.flags & 1 == 0:
            for position in stride(from: 0, to: frame.payload.count - 5, by: 6)
            where frame.payload[position] == 0 && frame.payload[position + 1] == 4 {
                // SETTINGS_INITIAL_WINDOW_SIZE changes the windows of all streams (section 6.9.2), not the
                // connection's.
                initial = Int64(frame.number(at: position + 2) ?? 0)
            }
        default:
            break
        }
    }

    /// A DATA frame was sent.
    mutating func sent(_ count: Int64, on id: Int) {
        connection -= count
        balances[id, default: 0] -= count
    }

    /// The stream is over.
    mutating func forget(_ id: Int) { balances[id] = nil }

    /// A client may name streams that never were or have ended: those take no memory for long.
    mutating func forget(over limit: Int, unless isOpen: (Int) -> Bool) {
        if balances.count > limit { balances = balances.filter { isOpen($0.key) } }
    }
}
