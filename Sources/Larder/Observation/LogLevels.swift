import Locks
import Logging

/// The levels of all loggers made with ``logger(_:)``, by category. They can be changed at any time.
///
/// The messages of every part of Larder have metadata `category`. Loggers are values, and each part keeps a copy of the
/// one that it was configured with; a logger made here reads these levels at every message.
///
///     let levels = LogLevels(.warning)
///     var configuration = Configuration()
///     configuration.logger = levels.logger(Logger(label: "app.cache"))
///     // Later, for instance on a signal:
///     levels["commits"] = .debug
///
/// Safe to use from any thread. A message below every level costs one lock that no one else holds for long.
public final class LogLevels: Sendable {
    private struct State {
        var level: Logger.Level
        var categories: [String: Logger.Level] = [:]
        /// The least of all: what a logger may not drop before its category is known.
        var least: Logger.Level

        mutating func settle() { least = categories.values.reduce(level) { min($0, $1) } }
    }

    private let state: EngineMutex<State>

    /// - Parameter level: the level of messages whose category has none of its own. Default: info, as for a `Logger`.
    public init(_ level: Logger.Level = .info) { state = EngineMutex(State(level: level, least: level)) }

    /// The least level that is written for categories without a level of their own.
    public var level: Logger.Level {
        get { state.withLock { $0.level } }
        set {
            state.withLock { state in
                state.level = newValue
                state.settle()
            }
        }
    }

    /// The least level of messages of a category; nil: ``level``.
    ///
    /// - Parameter category: as in the metadata of messages. A category that no part uses is kept, and has no effect.
    public subscript(category: String) -> Logger.Level? {
        get { state.withLock { $0.categories[category] } }
        set {
            state.withLock { state in
                state.categories[category] = newValue
                state.settle()
            }
        }
    }

    /// Replaces the levels of all categories.
    ///
    /// - Parameter categories: those that have a level of their own from now on.
    package func set(_ categories: [String: Logger.Level]) {
        state.withLock { state in
            state.categories = categories
            state.settle()
        }
    }

    /// A logger that writes to the same place as another one, if these levels allow it. Setting its `logLevel` has no
    /// effect.
    ///
    /// - Parameter logger: gives its handler and metadata; its level is ignored.
    public func logger(_ logger: Logger) -> Logger {
        var inner = logger.handler
        inner.logLevel = .trace
        return Logger(label: logger.label) { _ in LeveledHandler(levels: self, inner: inner) }
    }

    fileprivate var least: Logger.Level { state.withLock { $0.least } }

    fileprivate func level(of category: String?) -> Logger.Level {
        state.withLock { state in category.flatMap { state.categories[$0] } ?? state.level }
    }
}

/// Asks levels that may change at every message.
private struct LeveledHandler: LogHandler {
    let levels: LogLevels
    var inner: any LogHandler

    var logLevel: Logger.Level {
        get { levels.least }
        // The levels are set where they are kept.
        set {}
    }

    var metadata: Logger.Metadata {
        get { inner.metadata }
        set { inner.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { inner[metadataKey: key] }
        set { inner[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        let category = (event.metadata?["category"] ?? inner[metadataKey: "category"]).map { "\($0)" }
        guard event.level >= levels.level(of: category) else { return }
        inner.log(event: event)
    }
}
