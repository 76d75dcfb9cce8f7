#if os(Linux)
    import Foundation

    /// Mounts that no other process sees, and that end with this one however it ends.
    ///
    /// The program starts itself again as the first process of a namespace of processes and of one of mounts, which
    /// dies with it by whatever signal that ends, Ctrl-C and SIGKILL included. The kernel then kills all others of the
    /// namespace; with the last of them the mounts go, and the loop devices with the mounts.
    enum PrivateMounts {
        /// Memory of this run: a tmpfs that goes with the namespace.
        static let root = "/mnt"
        static let variable = "LARDER_TORTURE_NAMESPACE"

        /// Returns in the new process: `nil` if all is well, otherwise the reason for the failure.
        static func enter() throws -> String? {
            if geteuid() != 0 { return "needs root" }
            if ProcessInfo.processInfo.environment[variable] == nil { exit(try startAgain()) }
            try command("mount", "-t", "tmpfs", "tmpfs", root)
            return nil
        }

        /// Starts the program in the namespaces, and waits for it. When this process dies, so does that one.
        private static func startAgain() throws -> Int32 {
            var environment = ProcessInfo.processInfo.environment
            environment[variable] = "\(getpid())"
            let words =
                ["setpriv", "--pdeathsig", "KILL"]
                + ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"] + CommandLine.arguments
            let argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
            let envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
            var identifier: pid_t = 0
            let code = posix_spawnp(&identifier, words[0], nil, nil, argv, envp)
            guard code == 0 else { throw Failure("\(words[0]): \(String(cString: strerror(code)))") }
            var status: Int32 = 0
            while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            return status & 0x7F == 0 ? status >> 8 & 0xFF : 1
        }

        /// Runs a program. Throws what it says if it fails.
        static func command(_ words: String...) throws { try command(words) }

        static func command(_ words: [String]) throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = words
            let errors = Pipe()
            process.standardOutput = FileHandle.nullDevice
            process.standardError = errors
            try process.run()
            let said = errors.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            if process.terminationStatus != 0 {
                throw Failure("\(words.joined(separator: " ")): \(String(decoding: said, as: UTF8.self))")
            }
        }

        /// Removes a mount. If something holds it, it is removed with its holder.
        static func unmount(_ place: String) {
            for _ in 0..<50 {
                if umount2(place, 0) == 0 { return }
                usleep(20_000)
            }
            umount2(place, Int32(MNT_DETACH))
        }
    }
#endif
