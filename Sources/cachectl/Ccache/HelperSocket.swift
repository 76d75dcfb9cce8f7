import CachectlCore
import NIOCore
import NIOPosix
import SystemPackage

/// The path of the socket on which ccache looks for its helper.
///
/// Only one helper may have it, and one that was killed leaves the socket behind. So a helper locks a file beside it,
/// for as long as it lives: with the lock a socket that is there is a leftover. The system gives a dead process's lock
/// free.
final class HelperSocket: Sendable {
    private let path: String
    private let lock: SystemPackage.FileDescriptor

    private static func lockPath(_ path: String) -> String { path + ".lock" }

    /// Takes the path over.
    /// - Throws: `temporary` if another helper listens there, or the path cannot be used.
    init(_ path: String) async throws {
        self.path = path
        // unix(7): with the zero at its end.
        let longest = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1
        guard path.utf8.count <= longest else {
            throw CommandError(
                .temporary,
                "the path of the socket has \(path.utf8.count) bytes, and at most \(longest) are allowed: \(path)")
        }
        lock = try Self.locked(path)
        // A helper of an earlier version has no lock.
        guard await !Self.isListening(path) else {
            throw CommandError(.temporary, "another helper listens on \(path)")
        }
    }

    private static func locked(_ path: String) throws -> SystemPackage.FileDescriptor {
        let name = FilePath(lockPath(path))
        for _ in 0..<100 {
            let descriptor: SystemPackage.FileDescriptor
            do {
                descriptor = try SystemPackage.FileDescriptor.open(
                    name, .readWrite, options: [.create, .closeOnExec, .noFollow], permissions: .ownerReadWrite)
            } catch {
                throw CommandError(.temporary, "cannot listen on \(path): \(error)")
            }
            guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
                let cause = Errno(rawValue: errno)
                try? descriptor.close()
                throw CommandError(
                    .temporary,
                    cause == .wouldBlock ? "another helper listens on \(path)" : "cannot lock \(name): \(cause)")
            }
            // The one before removes its file when it ends: then the lock is of a file that no other helper finds.
            var (own, named) = (stat(), stat())
            if fstat(descriptor.rawValue, &own) == 0, name.withPlatformString({ stat($0, &named) }) == 0,
                own.st_ino == named.st_ino, own.st_dev == named.st_dev
            {
                return descriptor
            }
            try? descriptor.close()
        }
        throw CommandError(.temporary, "cannot keep the lock \(name): another program removes it")
    }

    private static func isListening(_ path: String) async -> Bool {
        let bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        do {
            try await bootstrap.connect(unixDomainSocketPath: path).get().close()
            return true
        } catch let error as IOError {
            // Only these say that no process is there; a socket of another kind, or of another user, stays.
            return error.errnoCode != ECONNREFUSED && error.errnoCode != ENOENT
        } catch {
            return true
        }
    }

    deinit {
        _ = unlink(Self.lockPath(path))
        try? lock.close()
    }
}
