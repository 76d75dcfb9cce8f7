import Logging
import Synchronization

/// The open stores that share an engine: which of them hear of what happens, and which application versions are in use.
final class Audience: Sendable {
    private struct Member {
        let observer: (@Sendable (StoreEvent) -> Void)?
        let logger: Logger
        let version: String?
    }

    private struct State {
        var members: [UInt32: Member] = [:]
        var latest: UInt32 = 0
        /// Their loggers, one for each label and level: stores that were opened alike log once.
        var loggers: [Logger] = []

        mutating func gatherLoggers() {
            loggers = []
            for (_, member) in members.sorted(by: { $0.key < $1.key })
            where !loggers.contains(where: {
                $0.label == member.logger.label && $0.logLevel == member.logger.logLevel
            }) {
                loggers.append(member.logger)
            }
        }
    }

    private let state = Mutex(State())

    /// A store is opened; returns the number that stands for it.
    func join(_ configuration: Configuration) -> UInt32 {
        state.withLock { state in
            state.latest += 1
            state.members[state.latest] = Member(
                observer: configuration.observer, logger: configuration.logger, version: configuration.version)
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

    /// True if there is an observer.
    var isObserved: Bool { state.withLock { $0.members.values.contains { $0.observer != nil } } }

    /// Tells every observer.
    func tell(_ event: StoreEvent) {
        for observer in state.withLock({ $0.members.values.compactMap(\.observer) }) { observer(event) }
    }

    /// Writes to every logger.
    var log: StoreLog { StoreLog(loggers: state.withLock { $0.loggers }) }
}

/// The loggers of the stores that share an engine, as one.
struct StoreLog {
    fileprivate let loggers: [Logger]

    /// The program is about to end for it.
    func critical(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil) {
        log(.critical, message(), metadata())
    }

    /// Something failed, or was damaged.
    func error(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil) {
        log(.error, message(), metadata())
    }

    /// Something that did not work does no harm, or not yet.
    func warning(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil) {
        log(.warning, message(), metadata())
    }

    /// What failed before works again.
    func notice(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil) {
        log(.notice, message(), metadata())
    }

    /// Something out of the ordinary was put right.
    func info(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil) {
        log(.info, message(), metadata())
    }

    private func log(
        _ level: Logger.Level, _ message: @autoclosure () -> Logger.Message,
        _ metadata: @autoclosure () -> Logger.Metadata?
    ) {
        for logger in loggers where logger.logLevel <= level {
            logger.log(level: level, message(), metadata: metadata(), source: "Larder")
        }
    }
}
