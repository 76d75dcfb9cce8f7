/// A turn that the processes of a store take one after the other, each with all its threads: what one of them frees on
/// a full disk is not for another to take.
///
/// It keeps no one waiting for long: a process that was stopped in its turn costs each other one `limit`, and is not
/// waited for again until it has given the turn back.
final class ProcessTurn: @unchecked Sendable {
    // SAFETY: `holders`, `lock` and `patience` are touched only under `monitor`.
    private let directory: Directory
    private let monitor = Monitor()
    private var holders = 0
    private var lock: OwnedDescriptor?
    /// For how many more pauses the turn is waited for.
    private var patience = limit
    private let pause: @Sendable () -> Void
    static let limit = 1000

    /// - Parameters:
    ///   - directory: the one that is locked, by flock(2).
    ///   - pause: between two tries. Default: a millisecond.
    init(_ directory: Directory, pause: @escaping @Sendable () -> Void = { usleep(1000) }) {
        self.directory = directory
        self.pause = pause
    }

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
        while true {
            guard let isTaken = try? FileSystem.lock(descriptor, wait: false, path: directory.path) else { return nil }
            if isTaken {
                patience = Self.limit
                return descriptor
            }
            if patience == 0 { return nil }
            patience -= 1
            pause()
        }
    }
}
