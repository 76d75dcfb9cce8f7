import ArgumentParser
import CachectlCore
import Larder
import LarderPackages
import SystemPackage

/// An error as the user sees it: `cachectl: message (cause)` on standard error, and the exit status.
struct ErrorReport {
    let status: ExitStatus
    /// The name of the code, for programs.
    let code: String
    let message: String?
    let path: String?
    let key: String?
    let cause: String?
    /// The help or the version, where the user asked for it: this goes to standard output.
    private(set) var answer: String?
    /// The command line that prints the help.
    private(set) var help: String?

    /// - Parameter command: the command that ran; nil if the command line could not be parsed.
    init(_ error: any Error, command: String? = nil) {
        switch error {
        case let error as LarderError:
            self.init(
                ExitStatus(error), "\(error.code)", error.text, path: error.path, key: error.key, cause: error.cause)
        case let error as CommandError:
            self.init(
                error.status, error.code ?? "\(error.status)", error.message, path: error.path, key: error.key,
                cause: error.cause)
        case let error as PackageError:
            let place = [error.archive?.string, error.member.map { Key($0).description }].compactMap { $0 }
            self.init(
                error.code == .io ? (error.cause as? Errno).map(ExitStatus.init) ?? .inputOutput : error.code.status,
                error.code.rawValue,
                (place + [error.message]).joined(separator: ": "), path: error.archive, cause: error.cause)
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

    /// `cachectl: message (cause)`; empty without a message.
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
        if let answer {
            do {
                try Output.write(answer.hasSuffix("\n") ? answer : answer + "\n")
            } catch {
                ErrorReport(error).leave(asJSON: asJSON)
            }
        }
        // If standard error is closed too, there is nowhere to report it.
        if status != .brokenPipe, message != nil {
            Output.complain(asJSON ? (try? JSON.line(ErrorJSON(self))) ?? text : text)
        }
        exit(status.rawValue)
    }
}

/// `ErrorReport` as JSON.
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
    /// The message, and the command that helps.
    fileprivate var text: String {
        let hint = code == .wrongKey ? " (--key-file, or LARDER_KEY_FILE, LARDER_KEY, LARDER_PASSPHRASE)" : ""
        return message + (remedy.map { ": " + $0.command } ?? "") + hint
    }
}

extension LarderError.Remedy {
    /// The command that does what a call of the library does.
    fileprivate var command: String {
        switch self {
        case .repair: "run 'cachectl verify --repair'"
        case .rebuildIndex:
            "stop every process that uses the store, then run 'cachectl verify --repair', which keeps every "
                + "readable entry"
        case .makeRoom:
            "raise the budget ('cachectl budget --bytes'), lower the free-disk floor, or unpin entries"
        case .raiseBudget: "raise the budget ('cachectl budget --bytes'), or store it elsewhere"
        case .raiseLargestEntry: "raise the limit ('cachectl budget --largest-entry')"
        case .allowOtherOwner: "open it as that user, choose another directory, or use --any-owner"
        case .openReadOnly: "use a command that only reads, or remount the file system"
        }
    }
}
