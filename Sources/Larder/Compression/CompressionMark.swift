import Locks

/// The mark of a store that may hold compressed bodies, as far as this process has made or found it: once, before it
/// accepts the first put of one. The mark stays.
final class CompressionMark: Sendable {
    private let isMade = Atomic<Bool>(false)

    /// Makes sure of it; the first time it waits for the writer lock and for a sync.
    func make(in files: StoreFiles, _ transactions: Transactions) throws {
        if isMade.load(ordering: .acquiring) { return }
        try transactions.housekeep { _ in try FormatFile.require(.compression, in: files.root) }
        isMade.store(true, ordering: .releasing)
    }
}
