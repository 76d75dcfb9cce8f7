import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// An error as the user sees it: `cachectl: what went wrong (cause)` on standard error, and the exit status.
struct ErrorReport {
    let status: ExitStatus
    /// Name of the code, for programs.
    let code: String
    let message: String?
    let path: String?
    let key: String?
    let cause: String?
    /// What goes to standard output instead: help or the version was asked for.
    private(set) var answer: String?
    /// The command whose help tells how it is used.
    private(set) var help: String?

    /// - Parameter command: the one that ran; nil where the command line could not be parsed.
    init(_ error: any Error, command: String? = nil) {
        switch error {
        case let error as LarderError:
            self.init(
                ExitStatus(error), "\(error.code)", error.text, path: error.path, key: error.key, cause: error.cause)
        case let error as CommandError:
            self.init(
                error.status, error.code ?? "\(error.status)", error.message, path: error.path, key: error.key,
                cause: error.cause)
        case is CancellationError:
            self.init(.interrupted, "cancelled", nil)
        case let error as Errno:
            self.init(ExitStatus(error), "io", error.description)
        default:
            let full = Cachectl.fullMessage(for: error)
            switch Cachectl.exitCode(for: error) {
            case .success:
                self.init(.fine, "fine", nil)
                answer = full
            case .validationFailure:
                self.init(.usage, "usage", Cachectl.message(for: error))
                help = command.map { "cachectl \($0) --help" } ?? Self.help(in: full)
            default:
                self.init(.software, "software", "\(error)")
            }
        }
    }

    private init(
        _ status: ExitStatus, _ code: String, _ message: String?, path: FilePath? = nil, key: Key? = nil,
        cause: (any Error)? = nil
    ) {
        self.status = status
        self.code = code
        self.message = message
        self.path = path?.string
        self.key = key?.description
        self.cause = cause.map { "\($0)" }
    }

    /// `cachectl: message (cause)`; empty where there is nothing to say.
    var text: String {
        guard let message else { return "" }
        return "cachectl: " + message + (cause.map { " (\($0))" } ?? "") + "\n"
            + (help.map { "See '\($0)'.\n" } ?? "")
    }

    /// The parser ends its messages with `See 'cachectl gc --help' for more information.`
    private static func help(in full: String) -> String? {
        guard let start = full.firstRange(of: "See '"), let end = full[start.upperBound...].firstIndex(of: "'") else {
            return nil
        }
        return String(full[start.upperBound..<end])
    }

    /// Prints the report and ends the program.
    func leave(asJSON: Bool) -> Never {
        if let answer { try? Output.write(answer.hasSuffix("\n") ? answer : answer + "\n") }
        // There is no way left to tell when standard error is closed too.
        if status != .brokenPipe, message != nil {
            Output.complain(asJSON ? (try? JSON.line(ErrorJSON(self))) ?? text : text)
        }
        exit(status.rawValue)
    }
}

/// `ErrorReport` for programs.
private struct ErrorJSON: Encodable {
    let error: Details

    struct Details: Encodable {
        let code: String
        let exitCode: Int32
        @Nullable var message: String?
        @Nullable var path: String?
        @Nullable var key: String?
        @Nullable var cause: String?
    }

    init(_ report: ErrorReport) {
        error = Details(
            code: report.code, exitCode: report.status.rawValue, message: report.message, path: report.path,
            key: report.key, cause: report.cause)
    }
}

extension LarderError {
    /// The message, with what to do in terms of this program.
    fileprivate var text: String { message + (remedy.map { ": " + $0.command } ?? "") }
}

extension LarderError.Remedy {
    /// The command that stands for a call of the library.
    fileprivate var command: String {
        switch self {
        case .repair: "run 'cachectl verify --repair'"
        case .rebuildIndex:
            "end every process that uses the store, then run 'cachectl verify --repair', which keeps the entries that can "
                + "still be read"
        case .makeRoom:
            "raise the budget ('cachectl budget --bytes'), lower the free-disk floor, or unpin entries"
        case .raiseBudget: "raise the budget ('cachectl budget --bytes') or store it elsewhere"
        case .raiseLargestEntry: "raise the limit ('cachectl budget --largest-entry')"
        case .allowOtherOwner: "open it as that user, choose another directory, or allow it (--any-owner)"
        case .openReadOnly: "use a command that only reads, or remount the file system"
        }
    }
}
