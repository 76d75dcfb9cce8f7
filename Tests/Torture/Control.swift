import Foundation
import Larder

/// Files written without a store, to show that the test detects a loss: `safe` ones are written, synced, renamed, and
/// their directory is synced; `hasty` ones are written and renamed.
enum Control {
    static let kinds = ["safe", "hasty"]

    /// Replaces files until it is killed. Prints what `Journal` reads, after the name of the kind.
    static func work(_ path: String, _ operations: Int) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let directory = open(path, O_RDONLY | O_DIRECTORY)
        guard directory >= 0 else { throw Failure("\(path): \(errno)") }
        var generator = SystemRandomNumberGenerator()
        for number in 0..<operations {
            let kind = kinds[number % kinds.count]
            let name = "\(kind)-\(number / kinds.count % 40)"
            let body = Workload.body(name, seed: generator.next(), length: 3000)
            WorkerMain.say("\(kind) B \(name) \(Digest.of(body))")
            try replace(path, name, body, directory, isSynced: kind == "safe")
            WorkerMain.say("\(kind) D \(name) \(Digest.of(body))")
            usleep(3000)
        }
    }

    private static func replace(
        _ path: String, _ name: String, _ body: [UInt8], _ directory: Int32, isSynced: Bool
    ) throws {
        let descriptor = open("\(path)/new", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        guard write(descriptor, body, body.count) == body.count, !isSynced || fsync(descriptor) == 0,
            rename("\(path)/new", "\(path)/\(name)") == 0, !isSynced || fsync(directory) == 0
        else { throw Failure("control: \(errno)") }
    }

    /// How many files differ from what a journal promises.
    static func losses(_ path: String, _ journal: Journal) -> Int {
        journal.allowed.count { name, digests in
            let body = FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init)
            return !digests.contains(body.map { Digest.of($0).hexadecimal })
        }
    }
}
