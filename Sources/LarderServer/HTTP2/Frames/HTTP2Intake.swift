/// What the client may send of one stream, or of all (RFC 9113 section 5.2).
struct HTTP2Intake {
    /// The window that each begins with, which is not announced: it is the default (section 6.9.2).
    private static let window = 65_535
    /// What is given back at once, so that not every frame costs one of ours.
    private static let step = window / 2

    private var left = window

    /// DATA has come. Returns false if it is more than was allowed.
    mutating func take(_ count: Int) -> Bool {
        left -= count
        return left >= 0
    }

    /// What is to be given back now; 0 for nothing.
    mutating func giveBack() -> Int {
        let count = Self.window - left
        guard count >= Self.step else { return 0 }
        left = Self.window
        return count
    }
}
