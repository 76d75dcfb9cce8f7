import Larder
import Logging
import Locks

/// Remembers what the store refuses, and tells it once a cause: when it begins and when it is over.
final class StoreWatch: Sendable {
    private struct State {
        var troubles: [StoreTrouble.Work: StoreTrouble] = [:]
        var failures: UInt64 = 0
        /// When each work failed last.
        var failed: [StoreTrouble.Work: ContinuousClock.Instant] = [:]
    }

    /// How long nothing may fail until a success ends a trouble: where large bodies cannot be written and small ones
    /// can, it would begin and end with every response.
    static let quiet = Duration.seconds(5)

    private let state = Mutex(State())
    /// Whether there is any trouble, so that a success costs one load.
    private let isTroubled = Atomic(false)
    private let logger: Logger

    private let now: @Sendable () -> ContinuousClock.Instant

    init(_ logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.logger = logger
        self.now = now
    }

    /// What is wrong now.
    var troubles: [StoreTrouble] {
        state.withLock { $0.troubles.values.sorted { $0.work.rawValue < $1.work.rawValue } }
    }

    /// Failures so far.
    var failures: UInt64 { state.withLock { $0.failures } }

    /// Counts failures that another cache over the same path has seen.
    func add(_ failures: UInt64) { state.withLock { $0.failures += failures } }

    /// The store failed. It is not a failure if a body is too large, if its writer was told to drop it, or if it was
    /// removed or displaced while it was written.
    func failed(_ work: StoreTrouble.Work, _ error: any Error, key: String) {
        let code = (error as? LarderError)?.code
        let isRefusal = code.map { [.tooLarge, .invalidArgument, .closed, .gone].contains($0) } ?? false
        if isRefusal || error is CancellationError || error is SurplusContent || error is InvalidatedLoad {
            return logger.debug(
                "a response is not stored", metadata: ["category": "storing", "key": "\(key)", "error": "\(error)"])
        }
        let isNew = state.withLock { state in
            let old = state.troubles[work]
            state.failures += 1
            state.failed[work] = now()
            state.troubles[work] = StoreTrouble(
                work: work, code: code, message: "\(error)", count: (old?.count ?? 0) + 1)
            return old?.code != code || old == nil
        }
        isTroubled.store(true, ordering: .releasing)
        let metadata: Logger.Metadata = [
            "category": "store", "work": "\(work.rawValue)", "key": "\(key)", "error": "\(error)",
        ]
        if isNew {
            logger.error("the store fails, the cache continues without it", metadata: metadata)
        } else {
            logger.debug("the store fails still", metadata: metadata)
        }
    }

    /// The store did what the cache asked for.
    func succeeded(_ work: StoreTrouble.Work) {
        guard isTroubled.load(ordering: .acquiring) else { return }
        let old: StoreTrouble? = state.withLock { state in
            if let failed = state.failed[work], failed.duration(to: now()) < Self.quiet { return nil }
            let old = state.troubles.removeValue(forKey: work)
            isTroubled.store(!state.troubles.isEmpty, ordering: .releasing)
            return old
        }
        guard let old else { return }
        // At the level of a failure, or the log would never say that the store works again.
        logger.warning(
            "the store works again",
            metadata: ["category": "store", "work": "\(work.rawValue)", "failures": "\(old.count)"])
    }
}
