import LMDB
import SystemPackage

extension LarderError {
    /// Whether the file system is full, rather than a file as long as it may be, or the budget.
    var isOfFullDisk: Bool {
        guard code == .noSpace else { return false }
        if let cause = cause as? LMDBError { return cause.code != EFBIG }
        // Without a cause it is a limit of the store's own.
        return cause.map { $0 as? Errno != .fileTooLarge } ?? false
    }

    /// The error for a system call that set `errno` to `number`. See the man page of `call` for the numbers.
    static func system(_ call: String, _ number: Int32, path: FilePath?, key: Key? = nil) -> LarderError {
        let place = path?.string ?? "a file of the store"
        let cause = Errno(rawValue: number)
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            return LarderError(
                .noSpace, "no space left to \(call) \(place): free some disk space or lower the budget",
                path: path, key: key, cause: cause)
        case EACCES, EPERM:
            return LarderError(
                .io, "no permission to \(call) \(place): the store must belong to the user who opens it",
                path: path, key: key, cause: cause)
        case EROFS:
            return LarderError(
                .io, "\(place) lies on a read-only file system", remedy: .openReadOnly, path: path, key: key,
                cause: cause)
        case EMFILE, ENFILE:
            return LarderError(
                .io, "no descriptor left to \(call) \(place): close some or raise the limit (ulimit -n)",
                path: path, key: key, cause: cause)
        case ELOOP:
            return LarderError(
                .corruption, "\(place) is a symbolic link, which a store never contains: remove it",
                path: path, key: key, cause: cause)
        default:
            return LarderError(.io, "cannot \(call) \(place)", path: path, key: key, cause: cause)
        }
    }
}
