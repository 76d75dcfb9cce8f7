import Larder
import SystemPackage

/// A failure of a command that is not the store's.
package struct CommandError: Error {
    /// How the program ends.
    package var status: ExitStatus
    /// Name of the code, for programs; nil: that of the status.
    package var code: String?
    /// What went wrong, where, and how to repair it; nil where the output says it already.
    package var message: String?
    /// The file or directory concerned, where there is one.
    package var path: FilePath?
    /// The key concerned, where there is one.
    package var key: Key?
    /// The error underneath.
    package var cause: (any Error)?

    package init(
        _ status: ExitStatus, _ message: String?, path: FilePath? = nil, key: Key? = nil, cause: (any Error)? = nil
    ) {
        self.status = status
        self.message = message
        self.path = path
        self.key = key
        self.cause = cause
    }

    /// A system call that failed; the status follows from `errno` unless given.
    package static func system(
        _ call: String, _ path: FilePath, _ status: ExitStatus? = nil, errno number: Int32 = errno
    )
        -> Self
    {
        let cause = Errno(rawValue: number)
        return CommandError(status ?? ExitStatus(cause), "\(call) \(path) failed", path: path, cause: cause)
    }

    /// The end after SIGINT or SIGTERM.
    package static let interrupted = CommandError(.interrupted, "interrupted")

    /// No entry under a key.
    package static func missing(_ key: Key, _ message: String? = nil) -> CommandError {
        var error = CommandError(.found, message ?? "there is no entry under \(key)", key: key)
        error.code = "missing"
        return error
    }

    /// An entry that is no longer fresh.
    package static func expired(_ key: Key, _ message: String) -> CommandError {
        var error = CommandError(.found, message, key: key)
        error.code = "expired"
        return error
    }

    /// A URL with several variants, of which the command line names none or more than one.
    package static func severalVariants(_ key: Key, _ message: String, isMissing: Bool) -> CommandError {
        var error = CommandError(isMissing ? .found : .usage, message, key: key)
        error.code = isMissing ? "missing" : "severalVariants"
        return error
    }

    /// The end when the output has said all there is to say.
    package static let found = CommandError(.found, nil)
}
