import Larder
import Locks
import SystemPackage

/// Stores the files of a tree in parallel.
package final class Importer: Sendable {
    /// The result.
    package struct Outcome: Sendable {
        package var files = 0
        package var bytes: Int64 = 0
        /// Files larger than the budget or the largest entry allowed.
        package var tooLarge: [String] = []
        /// Files and directories that could not be read.
        package var failed: [String] = []
    }

    private let store: Store
    private let root: FilePath
    private let base: [UInt8]
    private let options: PutOptions
    private let files: [FileTreeWalk.File]
    private let next = Atomic<Int>(0)
    private let outcome: Mutex<Outcome>

    /// - Parameter base: the prefix of every key.
    package init(_ store: Store, _ walk: FileTreeWalk, files: [FileTreeWalk.File], base: [UInt8], options: PutOptions) {
        self.store = store
        root = walk.root
        self.files = files
        self.base = base
        self.options = options
        outcome = Mutex(Outcome(failed: walk.unreadable))
    }

    /// Stores all files on `workers` threads. One of them calls `progress` after each of its files.
    package func run(workers: Int, progress: @escaping @Sendable (Outcome, Int) -> Void) throws -> Outcome {
        try Threads.concurrently(workers) { [self] number in
            let walk = FileTreeWalk(root)
            while let file = takeFile() {
                try Interruption.check()
                try store(file, walk)
                if number == 0 { progress(outcome.withLock { $0 }, files.count) }
            }
        }
        return outcome.withLock { $0 }
    }

    private func takeFile() -> FileTreeWalk.File? {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return index < files.count ? files[index] : nil
    }

    private func store(_ file: FileTreeWalk.File, _ walk: FileTreeWalk) throws {
        let path = walk.location(of: file.path)
        do {
            try store.adopt(path, for: KeyPath.key(base: base, path: file.path), options)
            outcome.withLock {
                $0.files += 1
                $0.bytes += file.length
            }
        } catch let error as LarderError {
            switch error.code {
            case .tooLarge: outcome.withLock { $0.tooLarge.append("\(path): \(ByteCount(file.length))") }
            case .io where error.path == path, .invalidArgument, .lengthMismatch:
                // Only this file failed: it is unreadable or missing, or it changed meanwhile. The others are still
                // imported.
                let cause = error.cause.map { " (\($0))" } ?? ""
                outcome.withLock { $0.failed.append(error.message + cause) }
            default: throw error
            }
        }
    }
}
