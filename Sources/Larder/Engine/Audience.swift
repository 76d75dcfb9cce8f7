import Logging
import Locks

/// The open stores that share an engine: which of them hear of what happens, and which application versions are in use.
final class Audience: Sendable {
    private struct Member {
        let observer: (@Sendable (StoreEvent) -> Void)?
        let logger: Logger
        var levels: [LogCategory: Logger.Level]
        let version: String?

        /// As it writes messages of a category.
        func logger(for category: LogCategory) -> Logger {
            var logger = logger
            if let level = levels[category] { logger.logLevel = level }
            return logger
        }
    }

    private struct State {
        var members: [UInt32: Member] = [:]
        var latest: UInt32 = 0
        /// Their loggers for each category, one for each label and level: stores that were opened alike log once.
        var loggers: [LogCategory: [Logger]] = [:]

        mutating func gatherLoggers() {
            for category in LogCategory.allCases {
                var found: [Logger] = []
                for (_, member) in members.sorted(by: { $0.key < $1.key }) {
                    let logger = member.logger(for: category)
                    if found.contains(where: { $0.label == logger.label && $0.logLevel == logger.logLevel }) {
                        continue
                    }
                    found.append(logger)
                }
                loggers[category] = found
            }
        }
    }

    private let state = EngineMutex(State())
    private let readers = EngineMutex<[EventBuffer]>([])
    private let readerCount = Atomic<Int>(0)

    /// A store is opened; returns the number that stands for it.
    func join(_ configuration: Configuration) -> UInt32 {
        state.withLock { state in
            state.latest += 1
            state.members[state.latest] = Member(
                observer: configuration.observer, logger: configuration.logger, levels: configuration.logLevels,
                version: configuration.version)
            state.gatherLoggers()
            return state.latest
        }
    }

    /// The store was closed, and others are left.
    func leave(_ handle: UInt32) {
        state.withLock { state in
            state.members[handle] = nil
            state.gatherLoggers()
        }
    }

    /// The application versions of the open stores.
    var versions: Set<String> { state.withLock { Set($0.members.values.compactMap(\.version)) } }

    /// True if there are several.
    var isShared: Bool { state.withLock { $0.members.count > 1 } }

    /// True if there is an observer, or a reader of events.
    var isObserved: Bool { hasReaders || state.withLock { $0.members.values.contains { $0.observer != nil } } }

    /// Tells every observer, and every reader of events.
    func tell(_ event: StoreEvent) {
        if hasReaders { tellReaders(event) }
        for observer in state.withLock({ $0.members.values.compactMap(\.observer) }) { observer(event) }
    }

    // MARK: Readers of events

    /// True if something reads events.
    @inline(__always)
    var hasReaders: Bool { readerCount.load(ordering: .relaxed) > 0 }

    func add(_ buffer: EventBuffer) {
        readers.withLock { readers in
            readers.append(buffer)
            readerCount.store(readers.count, ordering: .relaxed)
        }
    }

    func remove(_ buffer: EventBuffer) {
        readers.withLock { readers in
            readers.removeAll { $0 === buffer }
            readerCount.store(readers.count, ordering: .relaxed)
        }
    }

    /// Under the lock, so that all readers see one order.
    func tellReaders(_ event: StoreEvent) {
        readers.withLock { readers in for buffer in readers { buffer.add(event) } }
    }

    /// The store `handle` was closed: its readers get what is left, and then the end.
    func endEvents(of handle: UInt32) {
        let ended = readers.withLock { readers in readers.filter { $0.handle == handle } }
        for buffer in ended {
            buffer.end()
            remove(buffer)
        }
    }

    // MARK: Logs

    /// Writes to every logger.
    func log(_ category: LogCategory) -> StoreLog {
        StoreLog(state.withLock { $0.loggers[category] ?? [] }, category)
    }

    func setLogLevel(_ level: Logger.Level?, for category: LogCategory, of handle: UInt32) {
        state.withLock { state in
            state.members[handle]?.levels[category] = level
            state.gatherLoggers()
        }
    }

    /// The level that was set; nil: that of the logger applies.
    func logLevel(for category: LogCategory, of handle: UInt32) -> Logger.Level? {
        state.withLock { $0.members[handle]?.levels[category] }
    }
}
