import Failpoints
import LMDB
import SystemPackage

/// One of the parts that an `Engine` is made of, each with its own private state. `docs/architecture.md` lists them.
///
/// A part calls only the parts that it was made with; those are made before it, so no two call each other. What all of
/// them share is here by short names.
protocol EnginePart: Sendable {
    var context: EngineContext { get }
}

extension EnginePart {
    var path: FilePath { context.path }
    var files: StoreFiles { context.files }
    var index: Index { context.index }
    var clock: EntryClock { context.clock }
    var uptime: SystemClock { context.uptime }
    var configuration: Configuration { context.configuration }
    var audience: Audience { context.audience }
    var counters: Counters { context.counters }

    /// Writes messages of a category to the loggers of all stores that share the engine.
    func logger(_ category: LogCategory) -> StoreLog { context.audience.log(category) }

    /// A step that a process can be made to end at, in debug builds. `docs/recovery.md` lists the steps.
    @inline(__always)
    func reach(_ step: StaticString) { failpoint(step, at: context.path.string) }

    // MARK: Reading

    /// Runs `body` on a snapshot of the index.
    @inline(__always)
    func read<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        do {
            return try context.index.environment.read(body)
        } catch let error as LMDBError {
            throw context.translate(error)
        }
    }

    /// As `read`, on a snapshot of its own, for reads that last.
    func readLong<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        do {
            return try context.index.environment.readUnpooled(body)
        } catch let error as LMDBError {
            throw context.translate(error)
        }
    }

    /// The counters as of the last commit.
    func state() throws -> StoreState { try read { try context.index.state($0) } }

    /// The limits as of the last commit of any process; see `EngineContext.budget`.
    func budget() throws -> Budget { try context.budget() }

    /// Any error of a transaction, in the engine's terms.
    func translate(_ error: any Error) -> LarderError { context.translate(error) }

    // MARK: The engine's own work

    /// Tells of a failure of the engine's own work, once for each cause.
    func failed(_ work: StandingFailure.Work, _ error: any Error) {
        let error = context.translate(error)
        counters.add(work.scalar)
        guard context.health.note(error, of: work, at: clock.now()) else { return }
        logger(work.category).error(
            "background work failed; it will be retried, and this message is logged once",
            metadata: ["work": "\(work)", "error": "\(error)", "path": "\(path)"])
        configuration.observer?(.failing(work, error))
    }

    /// The work was done. True if that ends a failure.
    @discardableResult
    func succeeded(_ work: StandingFailure.Work) -> Bool {
        guard let ended = context.health.clear(work) else { return false }
        logger(work.category).notice(
            "the store's own work is done again",
            metadata: ["work": "\(work)", "failures": "\(ended.count)", "path": "\(path)"])
        configuration.observer?(.recovered(work))
        return true
    }
}
