import ArgumentParser
import Larder
import SystemPackage

/// What the shell gets to know: 0, 1, and the numbers of sysexits(3).
package enum ExitStatus: Int32, CaseIterable {
    /// All went well.
    case fine = 0
    /// Something was found (`verify`) or was missing (a key, a file that could not be read).
    case found = 1
    /// The command line is wrong. EX_USAGE
    case usage = 64
    /// Data is damaged, does not have its digest, does not fit, or is not what it should be. EX_DATAERR
    case data = 65
    /// There is no store at the path, or no input file. EX_NOINPUT
    case noInput = 66
    /// Not possible on this system or file system. EX_UNAVAILABLE
    case unavailable = 69
    /// A fault of cachectl itself. EX_SOFTWARE
    case software = 70
    /// Disk, budget or index are full. EX_OSERR
    case noSpace = 71
    /// An output file cannot be created. EX_CANTCREAT
    case cannotCreate = 73
    /// Reading or writing failed. EX_IOERR
    case inputOutput = 74
    /// Locked, or too many readers: try again. EX_TEMPFAIL
    case temporary = 75
    /// No permission. EX_NOPERM
    case noPermission = 77
    /// Ended by SIGINT or SIGTERM.
    case interrupted = 130
    /// The reader of standard output went away: what a shell reports for SIGPIPE.
    case brokenPipe = 141
}

extension ExitStatus {
    /// The one place where the library's codes become numbers.
    package init(_ error: LarderError) {
        switch error.code {
        case .invalidArgument: self = .usage
        case .locked, .readersFull: self = .temporary
        case .noSpace, .mapFull: self = .noSpace
        case .corruption, .formatMismatch, .digestMismatch, .lengthMismatch, .tooLarge: self = .data
        case .unsupported: self = .unavailable
        case .io: self = (error.cause as? Errno).map(ExitStatus.init) ?? .inputOutput
        default: self = .software
        }
    }

    /// For an address that cannot be listened on: one that is taken may be free later.
    package static func listening(_ errno: Errno) -> ExitStatus {
        switch errno {
        case .permissionDenied, .notPermitted: .noPermission
        case .addressInUse: .temporary
        default: .unavailable
        }
    }

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
