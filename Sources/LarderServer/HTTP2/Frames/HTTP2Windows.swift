/// How many bytes of content a client lets a connection and its streams send (RFC 9113 section 5.2).
struct HTTP2Windows {
    private static let largest: Int64 = 0x7FFF_FFFF

    /// What the connection may still send.
    private(set) var connection: Int64 = 65_535
    /// What a new stream may send.
    private(set) var initial: Int64 = 65_535

    /// WINDOW_UPDATE for the connection.
    mutating func growConnection(by count: Int64) throws(HTTP2Fault) {
        guard connection + count <= Self.largest else { throw .connection(.flowControlError) }
        connection += count
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE, which changes the windows of all streams (section 6.9.2), not the connection's.
    /// - Parameter balances: what open streams may send beyond the initial window.
    mutating func setInitial(_ value: Int64, balances: some Sequence<Int64>) throws(HTTP2Fault) {
        guard value <= Self.largest, !balances.contains(where: { value + $0 > Self.largest }) else {
            throw .connection(.flowControlError)
        }
        initial = value
    }

    /// WINDOW_UPDATE for a stream.
    /// - Parameter balance: what the stream may send beyond the initial window, or less than it.
    func grow(_ balance: inout Int64, by count: Int64, stream: Int) throws(HTTP2Fault) {
        guard initial + balance + count <= Self.largest else { throw .stream(stream, .flowControlError) }
        balance += count
    }

    /// DATA was sent.
    mutating func sent(_ count: Int64) { connection -= count }
}
