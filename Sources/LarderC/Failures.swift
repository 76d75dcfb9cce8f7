import CLarderInterface
import Larder
import SystemPackage

/// Runs the body of a C function. What it throws becomes a status, and the message of this thread.
/// - Parameter line: where the function is, by which its first calls are counted.
func status(
    file: StaticString = #fileID, line: Int = #line, _ body: () throws -> larder_status
) -> larder_status {
    FirstCalls.run(Int(bitPattern: file.utf8Start) &+ line) {
        do { return try body() } catch { return note(error) }
    }
}

/// As above for a body that does something or throws.
func status(
    file: StaticString = #fileID, line: Int = #line, doing body: () throws -> Void
) -> larder_status {
    status(file: file, line: line) {
        try body()
        return LARDER_OK
    }
}

/// A callback of C asked to stop.
struct Stopped: Error {}

extension LarderError {
    /// The status of its code: the codes and the errors of `larder_status` are the same.
    var status: larder_status { Self.statuses[code] ?? LARDER_FAILED }

    static let statuses: [Code: larder_status] = [
        .invalidArgument: LARDER_INVALID_ARGUMENT, .closed: LARDER_CLOSED, .locked: LARDER_LOCKED, .io: LARDER_IO,
        .noSpace: LARDER_NO_SPACE, .mapFull: LARDER_MAP_FULL, .readersFull: LARDER_READERS_FULL,
        .corruption: LARDER_CORRUPTION, .formatMismatch: LARDER_FORMAT_MISMATCH,
        .digestMismatch: LARDER_DIGEST_MISMATCH, .lengthMismatch: LARDER_LENGTH_MISMATCH,
        .tooLarge: LARDER_TOO_LARGE, .readOnly: LARDER_READ_ONLY, .unsupported: LARDER_UNSUPPORTED,
        .mustReopen: LARDER_MUST_REOPEN, .incomplete: LARDER_INCOMPLETE, .gone: LARDER_GONE,
        .wrongKey: LARDER_WRONG_KEY,
    ]

    /// The message, and the remedy as a caller from C can follow it.
    fileprivate var text: String {
        var copy = self
        copy.remedy = nil
        return copy.description + (remedy.map { ": " + $0.inC } ?? "")
    }
}

extension LarderError.Remedy {
    fileprivate var inC: String {
        switch self {
        case .repair: "call larder_check with LARDER_CHECK_REPAIR"
        case .rebuildIndex:
            "close the store in every process, then run cachectl verify --repair, which keeps the entries that can "
                + "still be read"
        case .makeRoom: "raise the budget or lower its free-disk floor (larder_set_budget), or unpin entries"
        case .raiseBudget: "raise the budget (larder_set_budget) or store it elsewhere"
        case .raiseLargestEntry: "raise largest_entry (larder_set_budget)"
        case .allowOtherOwner: "open it as that user, choose another directory, or set LARDER_OPEN_OTHER_OWNER"
        case .openReadOnly: "set LARDER_OPEN_READ_ONLY, or remount the file system"
        }
    }
}

/// Keeps an error for `larder_error_message` of this thread.
func note(_ error: any Error) -> larder_status {
    if error is Stopped { return LARDER_STOPPED }
    let known = error as? LarderError
    var text = known?.text ?? String(describing: error)
    let number = (known?.cause as? Errno)?.rawValue ?? 0
    text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { clarder_note_error($0.baseAddress, $0.count, number) }
    }
    return known?.status ?? LARDER_FAILED
}
