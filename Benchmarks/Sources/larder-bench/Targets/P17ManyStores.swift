import Foundation
import SystemPackage

/// P17: threads, descriptors and memory (`RssAnon`) of 200 small stores that a process has open, for each. Each has a
/// few entries, one of them a file, and has been read. Linux.
enum P17ManyStores: Target {
    static let id = "P17"
    private static let stores = 200

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let path = try context.directory.make("many")
        defer { FileTree.remove(path) }
        let answer = try ManyCommand.measure(path, stores: stores)
        func row(_ what: String, _ target: Double, _ unit: String, _ total: Double?) -> TargetRow {
            TargetRow(
                id: id, measure: "\(what) a store, \(stores) small stores in one process", against: "", sense: .atMost,
                target: target, reached: total.map { $0 / Double(answer.stores) }, unit: unit)
        }
        return [
            row("threads", 1, " threads", answer.threads.map(Double.init)),
            row("descriptors", 8, " descriptors", answer.descriptors.map(Double.init)),
            row("memory (RssAnon)", 256, " KiB", answer.anonymousBytes.map { Double($0) / 1024 }),
        ]
    }
}

extension ManyCommand {
    /// Runs `many` in a separate process.
    static func measure(_ path: FilePath, stores: Int) throws -> Answer {
        let output = try Subprocess.run(
            Subprocess.ownExecutable, ["many", "--path", path.string, "--stores", "\(stores)"])
        return try JSONDecoder().decode(Answer.self, from: output)
    }
}
