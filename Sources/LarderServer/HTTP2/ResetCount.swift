import NIOCore

/// How many requests a client has cancelled in half a minute.
struct ResetCount {
    /// More than people cause who look through pages of small pictures.
    static let limit = 2_000
    private static let window = TimeAmount.seconds(30)

    private var count = 0
    private var began = NIODeadline.uptimeNanoseconds(0)

    /// Counts one more. True for the one that is too many, once.
    mutating func isTooMany(at now: NIODeadline) -> Bool {
        if now - began >= Self.window { (began, count) = (now, 0) }
        count += 1
        return count == Self.limit
    }
}
