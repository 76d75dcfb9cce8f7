import Logging

/// The subject of a message in the log: the value of its metadata `category`.
///
/// `Configuration.logLevels` and `Store.setLogLevel(_:for:)` set which messages of each category are written. New
/// categories may be added.
public struct LogCategory: Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Opening and closing.
    public static let opening = LogCategory("opening")
    /// Leftovers of processes and machines that died.
    public static let recovery = LogCategory("recovery")
    /// Damage found, and how it was handled.
    public static let integrity = LogCategory("integrity")
    /// Batches, leases, accesses and body files on their way into the store.
    public static let commits = LogCategory("commits")
    /// Making room, and removing expired entries.
    public static let displacement = LogCategory("displacement")
    /// Checkpoints.
    public static let checkpoints = LogCategory("checkpoints")
    /// Failures that a call does not throw.
    public static let calls = LogCategory("calls")

    /// All categories.
    public static let allCases = [opening, recovery, integrity, commits, displacement, checkpoints, calls]

    /// The name, as in the log.
    public let description: String

    private init(_ name: String) { description = name }

    /// The category with a name, as `description` gives it; nil if there is none.
    /// - Parameter name: one of those of `allCases`.
    package init?(name: String) {
        guard let known = Self.allCases.first(where: { $0.description == name }) else { return nil }
        self = known
    }
}

extension StandingFailure.Work {
    /// Where its failures are logged.
    var category: LogCategory {
        switch self {
        case .commit, .publication, .touches, .leases: .commits
        case .displacement, .expiry: .displacement
        case .checkpoint: .checkpoints
        }
    }
}

extension Store {
    /// Sets which messages of a category this store's logger writes, from now on.
    ///
    /// Other stores of the path keep their own levels. Safe from any thread.
    /// - Parameters:
    ///   - level: the least level that is written, whatever the level of `Configuration.logger`. Nil restores its
    ///     level.
    ///   - category: the category of the messages.
    public func setLogLevel(_ level: Logger.Level?, for category: LogCategory) {
        engine.audience.setLogLevel(level, for: category, of: handle)
    }

    /// The least level of messages of a category that this store's logger writes.
    /// - Parameter category: the category of the messages.
    public func logLevel(for category: LogCategory) -> Logger.Level {
        engine.audience.logLevel(for: category, of: handle) ?? configuration.logger.logLevel
    }

    /// This store's logger alone.
    func logger(_ category: LogCategory) -> StoreLog {
        var logger = configuration.logger
        if let level = engine.audience.logLevel(for: category, of: handle) { logger.logLevel = level }
        return StoreLog([logger], category)
    }
}

/// The loggers of the stores that share an engine, as one, for messages of one category.
struct StoreLog {
    private let loggers: [Logger]
    private let category: LogCategory

    /// - Parameter loggers: with the levels that they have for the category.
    init(_ loggers: [Logger], _ category: LogCategory) {
        self.loggers = loggers
        self.category = category
    }

    /// The program is about to end for it.
    func critical(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.critical, message(), metadata())
    }

    /// Something failed, or was damaged.
    func error(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.error, message(), metadata())
    }

    /// Something that did not work does no harm, or not yet.
    func warning(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.warning, message(), metadata())
    }

    /// What failed before works again.
    func notice(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.notice, message(), metadata())
    }

    /// Something out of the ordinary was put right.
    func info(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.info, message(), metadata())
    }

    /// What the store does all the time.
    func debug(_ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata = [:]) {
        log(.debug, message(), metadata())
    }

    private func log(
        _ level: Logger.Level, _ message: @autoclosure () -> Logger.Message,
        _ metadata: @autoclosure () -> Logger.Metadata
    ) {
        for logger in loggers where logger.logLevel <= level {
            var metadata = metadata()
            metadata["category"] = "\(category)"
            logger.log(level: level, message(), metadata: metadata, source: "Larder")
        }
    }
}
