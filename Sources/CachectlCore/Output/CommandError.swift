import Larder
import SystemPackage

/// An error of a command, not of the store.
package struct CommandError: Error {
    /// The exit status.
    package var status: ExitStatus
    /// The name of the code, for programs; nil for the name of the status.
    package var code: String?
    /// What went wrong, where, and how to fix it; nil if the output has said it already.
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

    /// A failed system call. Unless given, the status follows from `errno`.
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

    /// There is no entry under a key.
    package static func missing(_ key: Key, _ message: String? = nil) -> CommandError {
        var error = CommandError(.found, message ?? "there is no entry under \(key)", key: key)
        error.code = "missing"
        return error
    }

    /// The entry has expired.
    package static func expired(_ key: Key, _ message: String) -> CommandError {
        var error = CommandError(.found, message, key: key)
        error.code = "expired"
        return error
    }

    /// A URL has several variants, and the command line does not select exactly one.
    package static func severalVariants(_ key: Key, _ message: String, isMissing: Bool) -> CommandError {
        var error = CommandError(isMissing ? .found : .usage, message, key: key)
        error.code = isMissing ? "missing" : "severalVariants"
        return error
    }

    /// Ends the program with status 1 and no message, because the output has said it already.
    package static let found = CommandError(.found, nil)
}
