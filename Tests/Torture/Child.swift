import Foundation

/// A process of this program that works on a store. What it prints goes to a file, which the kernel keeps when it is
/// killed.
final class Child {
    let processIdentifier: pid_t
    let output: String

    private let errors: String

    /// Starts `torture worker` with the arguments; `environment` is added to that of this process.
    ///
    /// - Parameter errors: where its standard error goes; `nil`: beside its output.
    init(
        _ arguments: [String], output: String, errors: String? = nil, environment: [String: String] = [:]
    ) throws {
        self.output = output
        self.errors = errors ?? output + ".err"
        let program = CommandLine.arguments[0]
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, self.errors, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
        var merged = ProcessInfo.processInfo.environment
        merged["SWIFT_BACKTRACE"] = "enable=no"
        merged.merge(environment) { $1 }
        let words = [program, "worker"] + arguments
        let argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        let envp: [UnsafeMutablePointer<CChar>?] = merged.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var identifier: pid_t = 0
        let code = posix_spawn(&identifier, program, &actions, nil, argv, envp)
        guard code == 0 else { throw Failure("posix_spawn: \(String(cString: strerror(code)))") }
        processIdentifier = identifier
    }

    private var status: Int32?

    /// True once the process has ended.
    var hasEnded: Bool {
        if status != nil { return true }
        var value: Int32 = 0
        if waitpid(processIdentifier, &value, WNOHANG) == processIdentifier { status = value }
        return status != nil
    }

    /// SIGKILL.
    func kill() { if !hasEnded { Foundation.kill(processIdentifier, SIGKILL) } }

    /// Waits for the end. Returns nil if it ended by itself without a complaint or by SIGKILL, otherwise what happened.
    func wait() -> String? {
        var value: Int32 = 0
        if status == nil {
            while waitpid(processIdentifier, &value, 0) < 0, errno == EINTR {}
            status = value
        }
        let signal = (status ?? 0) & 0x7F
        let code = ((status ?? 0) >> 8) & 0xFF
        if signal == SIGKILL || signal == 0 && code == 0 { return nil }
        let said = lines.first { $0.hasPrefix("BAD") } ?? ""
        let errors = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
        return "worker ended with \(signal != 0 ? "signal \(signal)" : "code \(code)"): \(said) \(errors.prefix(400))"
    }

    /// True if it was SIGKILL that ended it.
    var wasKilled: Bool { hasEnded && (status ?? 0) & 0x7F == SIGKILL }

    /// True once the store is open.
    var isReady: Bool { (try? FileManager.default.attributesOfItem(atPath: output)[.size] as? Int) ?? 0 > 0 }

    /// Complete lines of what it has printed so far.
    var lines: [Substring] {
        guard let data = FileManager.default.contents(atPath: output) else { return [] }
        var lines = String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // A line that was cut does not count.
        if !lines.isEmpty { lines.removeLast() }
        return lines
    }
}

/// An error that ends a run.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
