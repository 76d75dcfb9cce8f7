#if os(Linux)
    import Foundation

    /// A disk whose writes and flushes are logged, with a file system on it: `Tests/PowerLoss/blocklog.c`, a loop
    /// device, a mount.
    final class BlockDisk {
        /// Where the file system is mounted.
        let place = PrivateMounts.root + "/fs"
        /// Lines written to this file are added to the log.
        let said: String
        private let files = PrivateMounts.root + "/blocklog"
        private let log = PrivateMounts.root + "/log"
        private let server = Process()

        init(_ image: String, _ kind: FileSystemKind) throws {
            said = files + "/said"
            mkdir(files, 0o700)
            server.executableURL = try Self.program
            server.arguments = [image, log, files]
            try server.run()
            let limit = Date().addingTimeInterval(10)
            while access(said, F_OK) != 0 {
                guard server.isRunning, Date() < limit else { throw Failure("blocklog does not respond") }
                usleep(1000)
            }
            try kind.mount(files + "/disk", at: place)
        }

        private static var program: URL {
            get throws {
                let url = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
                    .appendingPathComponent("blocklog")
                guard access(url.path, X_OK) == 0 else {
                    throw Failure("\(url.path) is missing: run tools/torture power-loss --blocks")
                }
                return url
            }
        }

        /// How long the log is now.
        var length: Int {
            var status = stat()
            return stat(log, &status) == 0 ? Int(status.st_size) : 0
        }

        /// Unmounts, and reads the log up to a length.
        func end(at length: Int) throws -> BlockLog {
            PrivateMounts.unmount(place)
            PrivateMounts.unmount(files)
            server.waitUntilExit()
            defer { unlink(log) }
            return try BlockLog(log, length)
        }
    }
#endif
