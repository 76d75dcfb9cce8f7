import ArgumentParser
import Foundation
import Larder
import SystemPackage

/// `many`: what small stores cost a process that has them open. The target runs it as a separate process.
struct ManyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "many", abstract: "Open many small stores and print what they cost.", shouldDisplay: false)

    /// What it prints: what the stores add to the process, all of them together.
    struct Answer: Codable {
        var stores: Int
        /// Each nil if the kernel does not report it.
        var threads: Int?
        var descriptors: Int?
        var anonymousBytes: Int64?
    }

    @Option var path: String
    @Option var stores: Int

    func run() throws {
        // What belongs to the process, and not to a store, is there with the first.
        let first = try open(0)
        let before = Self.figures()
        let others = try (1...stores).map(open)
        let after = Self.figures()
        for store in others + [first] { try store.close() }
        func added<T: AdditiveArithmetic>(_ figure: KeyPath<Answer, T?>) -> T? {
            guard let end = after[keyPath: figure], let start = before[keyPath: figure] else { return nil }
            return end - start
        }
        print(
            try JSONOutput.text(
                Answer(
                    stores: stores, threads: added(\.threads), descriptors: added(\.descriptors),
                    anonymousBytes: added(\.anonymousBytes))))
    }

    /// A store in use: with a few entries, one of them a file, and a hit on each.
    private func open(_ number: Int) throws -> Store {
        var configuration = LarderPeer.configuration(PeerOptions(budgetBytes: 4 << 20))
        configuration.logger.logLevel = .error
        let store = try Store(at: FilePath(path).appending("\(number)"), configuration)
        for (key, length) in [("a", 100), ("b", 1000), ("c", 10_000), ("d", 100_000)] {
            try store.put([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length), for: Key(key))
            _ = try store.get(Key(key))
        }
        try store.flush()
        return store
    }

    private static func figures() -> Answer {
        func count(_ directory: String) -> Int? {
            try? FileManager.default.contentsOfDirectory(atPath: directory).count
        }
        return Answer(
            stores: 0, threads: count("/proc/self/task"), descriptors: count("/proc/self/fd"),
            anonymousBytes: ProcessFigures.anonymousBytes())
    }
}
