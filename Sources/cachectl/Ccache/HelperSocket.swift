import CachectlCore
import Foundation
import NIOCore
import NIOPosix
import SystemPackage

/// The path of the socket on which ccache looks for its helper.
///
/// Only one helper may have it, and one that was killed leaves the socket behind. So a helper locks a file beside it, for
/// as long as it lives: with the lock a socket that is there is a leftover. The system gives a dead process's lock free.
final class HelperSocket: Sendable {
    private let path: String
    private let lock: SystemPackage.FileDescriptor

    private static func lockPath(_ path: String) -> String { path + ".lock" }

    /// Takes the path over.
    /// - Throws: `temporary` if another helper listens there, or the path cannot be used.
    init(_ path: String) async throws {
        self.path = path
        lock = try Self.locked(path)
        // A helper of an earlier version has no lock.
        guard await !Self.isListening(path) else {
            throw CommandError(.temporary, "another helper listens on \(path)")
        }
    }

    private static func locked(_ path: String) throws -> SystemPackage.FileDescriptor {
        let name = FilePath(lockPath(path))
        while true {
            let descriptor: SystemPackage.FileDescriptor
            do {
                descriptor = try SystemPackage.FileDescriptor.open(
                    name, .readWrite, options: [.create, .closeOnExec, .noFollow], permissions: .ownerReadWrite)
            } catch {
                throw CommandError(.temporary, "cannot listen on \(path): \(error)")
            }
            guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
                try? descriptor.close()
                throw CommandError(.temporary, "another helper listens on \(path)")
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
    }

    private static func isListening(_ path: String) async -> Bool {
        let bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        guard let channel = try? await bootstrap.connect(unixDomainSocketPath: path).get() else { return false }
        try? await channel.close()
        return true
    }

    deinit {
        _ = unlink(Self.lockPath(path))
        try? lock.close()
    }
}
