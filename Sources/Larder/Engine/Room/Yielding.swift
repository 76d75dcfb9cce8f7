/// Long reads of one snapshot that make way for writers.
///
/// The pages that commits free while a snapshot is held cannot be reused, and in a store with a full byte budget that
/// leaves a writer little room. It says so in the ledger; the reader lets go of its snapshot and begins again on a new
/// one. Each time it holds on twice as long before it gives way, so it comes to an end in about three times what it
/// needs.
enum Yielding {
    /// A writer wants the pages.
    private struct Wanted: Error {}

    /// Nanoseconds between looks at the ledger.
    private static let interval: UInt64 = 1_000_000
    private static let firstPatience: UInt64 = 10_000_000

    /// Runs `body`, again from its beginning as often as its `poll` throws.
    /// - Parameter body: takes the snapshot and calls `poll` often; passes on what that throws.
    static func run<R>(_ files: StoreFiles, _ body: (_ poll: () throws -> Void) throws -> R) throws -> R {
        let clock = SystemClock()
        var patience: UInt64 = 0
        while true {
            let wishes = try PageWishes.count(files.index)
            let began = clock.uptime()
            var looked = began
            do {
                return try body {
                    let now = clock.uptime()
                    guard now &- looked >= interval else { return }
                    looked = now
                    if now &- began >= patience, try PageWishes.count(files.index) != wishes { throw Wanted() }
                }
            } catch is Wanted {
                patience = max(firstPatience, patience * 2)
            }
        }
    }
}
