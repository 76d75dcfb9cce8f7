import Locks

/// The thread for work of a store that may take long, and that no caller waits for: checkpoints. It is started when
/// there is work for the first time.
final class Maintenance: @unchecked Sendable {
    // SAFETY: `thread`, `isWanted` and `isStopped` are touched only under `monitor`, `lastCheckpoint` only by the
    // thread of the committer. `close()` joins the thread, so the engine, which owns this, outlives it.
    private let checkpoints: Checkpoints
    private let transactions: Transactions
    private let monitor = Monitor()
    private var thread: WorkerThread?
    private var isWanted = false
    private var isStopped = false
    private let isClosing = Atomic<Bool>(false)
    /// When the last checkpoint was wanted.
    private var lastCheckpoint: UInt64

    private static let checkpointInterval: UInt64 = 30 * 1_000_000_000

    init(checkpoints: Checkpoints, transactions: Transactions) {
        self.checkpoints = checkpoints
        self.transactions = transactions
        lastCheckpoint = checkpoints.configuration.clock.uptime()
    }

    /// Starts what is due. For the committer, which calls it after each pass.
    func wakeIfDue() {
        let now = checkpoints.configuration.clock.uptime()
        guard now &- lastCheckpoint >= Self.checkpointInterval else { return }
        lastCheckpoint = now
        guard transactions.hasUnsyncedFiles else { return }
        do {
            try wake()
        } catch {
            checkpoints.failed(.checkpoint, error)
        }
    }

    private func wake() throws(LarderError) {
        let hasThread = monitor.locked {
            isWanted = true
            monitor.signal()
            return thread != nil || isStopped
        }
        if hasThread { return }
        let started = try WorkerThread { [unowned self] in run() }
        monitor.locked { thread = started }
    }

    /// Ends the thread: after the file that it is syncing, not after the checkpoint. Call it when the committer has
    /// ended.
    func close() {
        isClosing.store(true, ordering: .releasing)
        let running = monitor.locked {
            isStopped = true
            monitor.signal()
            return thread
        }
        running?.join()
    }

    /// True once it does no further work.
    var isClosed: Bool { isClosing.load(ordering: .acquiring) }

    private func run() {
        while true {
            let isOver = monitor.locked {
                while !isWanted, !isStopped { monitor.wait() }
                isWanted = false
                return isStopped
            }
            if isOver { return }
            checkpoint()
        }
    }

    private func checkpoint() {
        do {
            try checkpoints.makeIfNeeded { self.isClosed }
            checkpoints.succeeded(.checkpoint)
        } catch {
            checkpoints.failed(.checkpoint, error)
        }
    }
}
