/// A turn that the processes of a store take one after the other, each with all its threads: what one of them frees on
/// a full disk is not for another to take.
///
/// It keeps no one waiting forever: a process that was stopped in its turn costs the others `limit` once each time.
final class ProcessTurn: @unchecked Sendable {
    // SAFETY: `holders` and `lock` are touched only under `monitor`.
    private let directory: Directory
    private let monitor = Monitor()
    private var holders = 0
    private var lock: OwnedDescriptor?
    /// Milliseconds.
    private static let limit = 1000

    /// - Parameter directory: the one that is locked, by flock(2).
    init(_ directory: Directory) { self.directory = directory }

    /// Runs `body` in the turn of this process.
    func held<R>(_ body: () throws -> R) rethrows -> R {
        monitor.locked {
            if holders == 0 { lock = take() }
            holders += 1
        }
        defer {
            monitor.locked {
                holders -= 1
                if holders == 0 { lock = nil }
            }
        }
        return try body()
    }

    /// Nil where the turn cannot be taken: then each process continues by itself.
    private func take() -> OwnedDescriptor? {
        // A descriptor of its own: a child of fork(2) closes those that are locked.
        guard let descriptor = try? FileSystem.open(".", in: directory, flags: O_RDONLY | O_DIRECTORY) else {
            return nil
        }
        for _ in 0..<Self.limit {
            guard let isTaken = try? FileSystem.lock(descriptor, wait: false, path: directory.path) else { return nil }
            if isTaken { return descriptor }
            usleep(1000)
        }
        return nil
    }
}
