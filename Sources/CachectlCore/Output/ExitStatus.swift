import ArgumentParser
import Larder
import SystemPackage

/// The exit status of `cachectl`: 0, 1, and the numbers of sysexits(3). docs/cachectl.md has the table for users.
package enum ExitStatus: Int32, CaseIterable {
    /// Success.
    case fine = 0
    /// A command found a problem (`verify`), or something is missing (a key, a file that cannot be read).
    case found = 1
    /// The command line is wrong. EX_USAGE
    case usage = 64
    /// Data is damaged, does not match its digest, is too large, or is not in the expected format. EX_DATAERR
    case data = 65
    /// There is no store at the path, or no input file. EX_NOINPUT
    case noInput = 66
    /// The system or the file system does not support it, or an origin does not answer. EX_UNAVAILABLE
    case unavailable = 69
    /// A bug in cachectl. EX_SOFTWARE
    case software = 70
    /// The disk, the budget or the index is full. EX_OSERR
    case noSpace = 71
    /// An output file cannot be created. EX_CANTCREAT
    case cannotCreate = 73
    /// Reading or writing failed. EX_IOERR
    case inputOutput = 74
    /// The store is locked, or a limit is reached for now: try again later. EX_TEMPFAIL
    case temporary = 75
    /// Permission denied, or nothing can be written. EX_NOPERM
    case noPermission = 77
    /// Ended by SIGINT or SIGTERM.
    case interrupted = 130
    /// The reader of standard output closed it: the status that a shell reports for SIGPIPE.
    case brokenPipe = 141
}

extension ExitStatus {
    /// The status for each code of the library. Every code has a row: a test compares them with the library's.
    static let statuses: [LarderError.Code: ExitStatus] = [
        .invalidArgument: .usage,
        // A command that uses a store after it closed it has a bug.
        .closed: .software,
        .locked: .temporary,
        // Only where the cause is not an `Errno`.
        .io: .inputOutput,
        .noSpace: .noSpace,
        .mapFull: .noSpace,
        .readersFull: .temporary,
        .corruption: .data,
        .formatMismatch: .data,
        .wrongKey: .noPermission,
        .digestMismatch: .data,
        .lengthMismatch: .data,
        .tooLarge: .data,
        // As EROFS: the store may be read, but not changed.
        .readOnly: .noPermission,
        .unsupported: .unavailable,
        .incomplete: .temporary,
        .gone: .temporary,
        // A write to the disk failed. The next command opens the store again.
        .mustReopen: .inputOutput,
    ]

    /// The status for an error of the library: that of its cause where a system call failed, else that of its code.
    package init(_ error: LarderError) {
        if error.code == .io, let cause = error.cause as? Errno {
            self.init(cause)
        } else {
            self = Self.statuses[error.code] ?? .software
        }
    }

    /// The status for an address that a server cannot listen on. One that is in use may become free.
    package static func listening(_ errno: Errno) -> ExitStatus {
        switch errno {
        case .permissionDenied, .notPermitted: .noPermission
        case .addressInUse: .temporary
        default: .unavailable
        }
    }

    /// The status for a system call that failed.
    package init(_ errno: Errno) {
        switch errno {
        case .permissionDenied, .notPermitted, .readOnlyFileSystem: self = .noPermission
        case .noSuchFileOrDirectory, .notDirectory: self = .noInput
        case .noSpace, .diskQuotaExceeded: self = .noSpace
        case .brokenPipe: self = .brokenPipe
        default: self = .inputOutput
        }
    }
}
