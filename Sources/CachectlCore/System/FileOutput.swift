import SystemPackage

/// Writes files for the user.
package enum FileOutput {
    /// Replaces a file atomically: readers see the old content or the new, and a failure keeps the old. Writes directly
    /// to devices, to pipes, and to what this program has open already, such as `/dev/stdout`.
    package static func replace(_ path: FilePath, _ write: (FileDescriptor) throws -> Void) throws {
        if let number = descriptor(named: path) {
            return try writing(path) {
                let file = try inherited(number)
                try file.closeAfter { try write(file) }
            }
        }
        var status = stat()
        let exists = path.withPlatformString { stat($0, &status) } == 0
        if exists, status.st_mode & S_IFMT != S_IFREG {
            let file = try openSpecial(path, isFIFO: status.st_mode & S_IFMT == S_IFIFO)
            return try writing(path) { try file.closeAfter { try write(file) } }
        }
        // In the directory of the target, because rename(2) does not cross file systems.
        let temporary = FilePath(path.string + ".cachectl-\(getpid())")
        let file = try open(temporary, .writeOnly, [.create, .truncate], as: path)
        do {
            try writing(path) { try file.closeAfter { try write(file) } }
            let result = temporary.withPlatformString { from in path.withPlatformString { rename(from, $0) } }
            if result != 0 { throw CommandError.system("rename to", path, .cannotCreate) }
        } catch {
            _ = temporary.withPlatformString { unlink($0) }
            throw error
        }
    }

    /// The descriptor that a path stands for: those of `/dev/fd` are links to what it leads to, and a file in the place
    /// of such a link would be there for every program.
    private static func descriptor(named path: FilePath) -> Int32? {
        switch path.string {
        case "/dev/stdout": return 1
        case "/dev/stderr": return 2
        default: break
        }
        guard let name = path.lastComponent?.string, name.utf8.allSatisfy({ 48...57 ~= $0 }),
            ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"].contains(path.removingLastComponent().string)
        else { return nil }
        return Int32(name)
    }

    /// A copy of a descriptor that this program was started with. Its own, which are closed at exec, may be those of
    /// the store.
    private static func inherited(_ number: Int32) throws -> FileDescriptor {
        let flags = fcntl(number, F_GETFD)
        guard flags >= 0, flags & FD_CLOEXEC == 0 else { throw Errno.badFileDescriptor }
        return try FileDescriptor(rawValue: number).duplicate()
    }

    /// Opens a device or a pipe. A FIFO without a reader is waited for here, where a signal can end that.
    private static func openSpecial(_ path: FilePath, isFIFO: Bool) throws -> FileDescriptor {
        while true {
            do {
                let file = try open(path, .writeOnly, isFIFO ? .nonBlocking : [], as: path)
                if isFIFO { file.blockAgain() }
                return file
            } catch let error as CommandError where isFIFO && (error.cause as? Errno) == .noSuchAddressOrDevice {
                try Interruption.check()
                usleep(50_000)
            }
        }
    }

    private static func open(
        _ path: FilePath, _ mode: FileDescriptor.AccessMode, _ options: FileDescriptor.OpenOptions,
        as target: FilePath
    ) throws -> FileDescriptor {
        do {
            return try FileDescriptor.open(path, mode, options: options, permissions: FilePermissions(rawValue: 0o644))
        } catch let error as Errno {
            throw CommandError(
                error == .permissionDenied || error == .readOnlyFileSystem ? .noPermission : .cannotCreate,
                "cannot create \(target)", path: target, cause: error)
        }
    }

    private static func writing(_ path: FilePath, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as Errno {
            throw CommandError(ExitStatus(error), "writing to \(path) failed", path: path, cause: error)
        }
    }
}

extension FileDescriptor {
    /// Lets reads and writes wait: fcntl(2), O_NONBLOCK. No effect where the system does not say what is set.
    func blockAgain() {
        let flags = fcntl(rawValue, F_GETFL)
        if flags >= 0 { _ = fcntl(rawValue, F_SETFL, flags & ~O_NONBLOCK) }
    }
}
