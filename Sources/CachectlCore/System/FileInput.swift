import SystemPackage

/// A file or standard input, to be read by a command.
package struct FileInput {
    /// The path of a regular file, which the store can adopt without reading it here; nil also for one without blocks
    /// on a disk, whose length may not be what it says (proc(5), sysfs(5)).
    package let regularFile: FilePath?
    private let path: FilePath?

    /// - Parameter path: nil or `-` for standard input.
    /// - Throws: `noInput` if there is no such file.
    package init(_ path: FilePath?) throws {
        guard let path, path != "-" else {
            self.path = nil
            regularFile = nil
            return
        }
        var status = stat()
        guard path.withPlatformString({ stat($0, &status) }) == 0 else { throw CommandError.system("reading", path) }
        if status.st_mode & S_IFMT == S_IFDIR {
            throw CommandError(.noInput, "\(path) is a directory: use 'cachectl import'", path: path)
        }
        self.path = path
        regularFile = status.st_mode & S_IFMT == S_IFREG && status.st_blocks > 0 ? path : nil
    }

    /// Passes the content to `body` in pieces of at most 256 KiB.
    /// - Returns: the number of bytes.
    package func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Int64 {
        guard let path else { return try Self.read(.standardInput, "standard input", body) }
        let file = try Self.open(path)
        return try file.closeAfter { try Self.read(file, path, body) }
    }

    /// The first `limit` bytes of a file.
    package static func bytes(of path: FilePath, atMost limit: Int = .max) throws -> [UInt8] {
        let file = try open(path)
        return try file.closeAfter {
            var bytes: [UInt8] = []
            do {
                _ = try read(file, path) { piece in
                    bytes.append(contentsOf: piece.prefix(limit - bytes.count))
                    if bytes.count == limit { throw Enough() }
                }
            } catch is Enough {}
            return bytes
        }
    }

    /// Stops reading early.
    private struct Enough: Error {}

    private static func open(_ path: FilePath) throws -> FileDescriptor {
        do {
            // A FIFO is not waited for here: `awaitInput` does, and hears signals.
            let file = try FileDescriptor.open(path, .readOnly, options: .nonBlocking)
            file.blockAgain()
            return file
        } catch let error as Errno {
            throw CommandError(ExitStatus(error), "cannot open \(path)", path: path, cause: error)
        }
    }

    /// Waits until there is something to read, or a writer of a FIFO has come and gone: read(2) continues after a
    /// signal, and no command has to.
    private static func awaitInput(_ file: FileDescriptor) throws {
        var one = pollfd(fd: file.rawValue, events: Int16(POLLIN), revents: 0)
        while true {
            try Interruption.check()
            let count = poll(&one, 1, 200)
            // What poll(2) cannot wait for can be read at once, or says why not.
            if count > 0 || count < 0 && errno != EINTR { return }
        }
    }

    private static func read(
        _ file: FileDescriptor, _ path: FilePath, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int64 {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { space.deallocate() }
        var total: Int64 = 0
        while true {
            let count: Int
            do {
                try awaitInput(file)
                count = try file.read(into: space)
            } catch let error as Errno {
                throw CommandError(ExitStatus(error), "reading \(path) failed", path: path, cause: error)
            }
            if count == 0 { return total }
            try body(UnsafeRawBufferPointer(rebasing: space[..<count]))
            total += Int64(count)
        }
    }
}
