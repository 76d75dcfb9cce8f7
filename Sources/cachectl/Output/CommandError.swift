import SystemPackage

/// A failure of a command that is not the store's.
struct CommandError: Error {
    /// How the program ends.
    var status: ExitStatus
    /// Name of the code, for programs; nil: that of the status.
    var code: String?
    /// What went wrong, where, and how to mend it; nil where the output says it already.
    var message: String?
    /// The error underneath.
    var cause: (any Error)?

    init(_ status: ExitStatus, _ message: String?, cause: (any Error)? = nil) {
        self.status = status
        self.message = message
        self.cause = cause
    }

    /// A system call that failed; the status follows from `errno` unless given.
    static func system(_ call: String, _ path: FilePath, _ status: ExitStatus? = nil, errno number: Int32 = errno)
        -> Self
    {
        let cause = Errno(rawValue: number)
        return CommandError(status ?? ExitStatus(cause), "\(call) \(path) failed", cause: cause)
    }

    /// The end after SIGINT or SIGTERM.
    static let interrupted = CommandError(.interrupted, "interrupted")
    /// No entry under a key.
    static func missing(_ key: String) -> CommandError {
        var error = CommandError(.found, "there is no entry under \(key)")
        error.code = "missing"
        return error
    }

    /// The end when the output has said all there is to say.
    static let found = CommandError(.found, nil)
}
