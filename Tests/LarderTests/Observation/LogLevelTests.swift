import Logging
import Locks
import TestSupport
import Testing

@testable import Larder

/// Which messages of the log are written is set for each category, at any time.
@Suite struct LogLevelTests {
    private final class Messages: Sendable {
        private let list = Mutex<[String]>([])
        var all: [String] { list.withLock { $0 } }
        func add(_ text: String) { list.withLock { $0.append(text) } }
    }

    private func configuration(
        _ messages: Messages, label: String = "test", level: Logger.Level = .critical
    ) -> Configuration {
        .testing {
            $0.logger = Logger(label: label) { _ in Recorder { messages.add($0) } }
            $0.logger.logLevel = level
        }
    }

    @Test func aLevelAppliesToItsCategoryOnly() throws {
        let messages = Messages()
        try withStore(configuration: configuration(messages)) { store in
            #expect(store.logLevel(for: .commits) == .critical)
            try store.put([1], for: "a", PutOptions(durability: .durable))
            #expect(messages.all == [])
            store.setLogLevel(.debug, for: .commits)
            #expect(store.logLevel(for: .commits) == .debug)
            #expect(store.logLevel(for: .checkpoints) == .critical)
            try store.put([1], for: "b", PutOptions(durability: .durable))
            try store.flush(.durable)
            #expect(Set(messages.all) == ["committed a batch"])
            store.setLogLevel(nil, for: .commits)
            let count = messages.all.count
            try store.put([1], for: "c", PutOptions(durability: .durable))
            #expect(messages.all.count == count)
        }
    }

    /// Levels that are asked for at every message, by each part that holds the logger.
    @Test func levelsOfManyLoggers() throws {
        let messages = Messages()
        let levels = LogLevels(.error)
        let base = Logger(label: "test") { _ in Recorder { messages.add($0) } }
        var copy = levels.logger(base)
        // A copy that another part keeps, and its attempt to set a level.
        copy.logLevel = .trace
        let kept = copy
        func say(_ text: String, _ level: Logger.Level, _ category: String? = nil) {
            kept.log(level: level, "\(text)", metadata: category.map { ["category": "\($0)"] })
        }
        say("1", .warning)
        say("2", .error)
        levels["storing"] = .debug
        #expect(levels["storing"] == .debug && levels["other"] == nil)
        say("3", .debug, "storing")
        say("4", .trace, "storing")
        say("5", .warning, "other")
        say("6", .warning)
        levels.level = .info
        say("7", .info, "other")
        levels.set(["other": .critical])
        say("8", .error, "other")
        say("9", .debug, "storing")
        var named = kept
        named[metadataKey: "category"] = "other"
        named.error("10")
        #expect(messages.all == ["2", "3", "7"])

        try withStore(configuration: .testing { $0.logger = levels.logger(base) }) { store in
            try store.put([1], for: "a", PutOptions(durability: .durable))
            #expect(!messages.all.contains("committed a batch"))
            levels["commits"] = .debug
            try store.put([1], for: "b", PutOptions(durability: .durable))
            #expect(messages.all.contains("committed a batch"))
        }
    }

    @Test func aLevelCanBeHigherThanThatOfTheLogger() throws {
        let messages = Messages()
        try withStore(configuration: configuration(messages, level: .debug)) { store in
            #expect(messages.all.contains("opened the store"))
            store.setLogLevel(.error, for: .commits)
            let before = messages.all.count { $0 == "committed a batch" }
            try store.put([1], for: "a", PutOptions(durability: .durable))
            #expect(messages.all.count { $0 == "committed a batch" } == before)
        }
    }

    /// It may fill the disk. Once: later opens find what was decided.
    @Test func aNewStoreWithoutABudgetSaysSo() throws {
        let messages = Messages()
        try withDirectory { path in
            for _ in 0..<2 { try Store(at: path, configuration(messages, level: .notice)).close() }
        }
        #expect(messages.all.count { $0.hasPrefix("the new store has no budget") } == 1)
        var quiet = configuration(messages, level: .notice)
        quiet.tellsUnlimited = false
        try withDirectory { path in try Store(at: path, quiet).close() }
        #expect(messages.all.count { $0.hasPrefix("the new store has no budget") } == 1)
    }

    @Test func levelsOfAnOpenApplyToIt() throws {
        let messages = Messages()
        var configuration = configuration(messages)
        configuration.logLevels = [.opening: .debug, .calls: .error]
        configuration.budget = Budget(bytes: .mebibytes(64))
        try withStore(configuration: configuration) { store in
            #expect(messages.all == ["opened the store"])
            #expect(store.logLevel(for: .opening) == .debug)
            store[Key(bytes: [])] = [1]
            #expect(messages.all == ["opened the store", "subscript write failed"])
        }
    }

    @Test func levelsOfStoresOfOnePathAreTheirOwn() throws {
        let (ofFirst, ofSecond) = (Messages(), Messages())
        try withDirectory { path in
            let first = try Store(at: path, configuration(ofFirst, label: "first"))
            let second = try Store(at: path, configuration(ofSecond, label: "second"))
            second.setLogLevel(.debug, for: .commits)
            try first.put([1], for: "k", PutOptions(durability: .durable))
            #expect(ofFirst.all == [])
            #expect(ofSecond.all == ["committed a batch"])
            try second.close()
            // It is over with the store.
            second.setLogLevel(.debug, for: .commits)
            try first.put([2], for: "k", PutOptions(durability: .durable))
            #expect(ofSecond.all == ["committed a batch"])
            try finish(first)
        }
    }

    @Test func categoriesHaveNames() {
        #expect(LogCategory.allCases.count == Set(LogCategory.allCases.map(\.description)).count)
        for category in LogCategory.allCases { #expect(LogCategory(name: category.description) == category) }
        #expect(LogCategory(name: "none") == nil)
    }
}
