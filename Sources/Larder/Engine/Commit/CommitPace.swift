/// How fast a batch fills while the one before it is written.
///
/// Its second half fills no faster than the commit runs: callers wait a little each, where they would all wait for its
/// end.
enum CommitPace {
    /// The longest pause, in nanoseconds: the estimate of the commit's time may be wrong.
    static let longest: UInt64 = 4_000_000

    /// How long a caller waits before it adds to the batch, in nanoseconds.
    /// - Parameters:
    ///   - filled: how full the batch is: 1 is the limit.
    ///   - elapsed: nanoseconds since the commit under way began.
    ///   - commitTime: nanoseconds that slow commits take lately.
    static func pause(filled: Double, elapsed: UInt64, commitTime: UInt64) -> UInt64 {
        let due = UInt64(Double(commitTime) * min(max(filled * 2 - 1, 0), 1))
        return elapsed < due ? min(due - elapsed, longest) : 0
    }
}
