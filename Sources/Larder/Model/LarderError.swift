import SystemPackage

/// An error of a store: its cause, the place where it happened, and what the caller can do about it.
///
/// A miss is not an error: lookups return nil. Every message names the path or the key; `remedy` names the call that
/// helps, where there is one. A cancelled task throws `CancellationError` instead.
public struct LarderError: Error, Sendable, CustomStringConvertible {
    /// The kind of error, by what the caller can do about it.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case invalidArgument, closed, locked, io, noSpace, mapFull, readersFull, corruption
            case formatMismatch, digestMismatch, lengthMismatch, tooLarge, readOnly, unsupported, mustReopen
            case incomplete, gone, wrongKey
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// An argument is out of its documented range.
        public static let invalidArgument = Code(.invalidArgument)
        /// The store, reader or writer is already closed.
        public static let closed = Code(.closed)
        /// Another program holds a file or lock that is needed.
        public static let locked = Code(.locked)
        /// A system call failed; `cause` has the `Errno`.
        public static let io = Code(.io)
        /// The file system, the free-disk floor or the budget leaves no room.
        public static let noSpace = Code(.noSpace)
        /// The index reached the address space reserved for it.
        public static let mapFull = Code(.mapFull)
        /// Every slot of the table of readers is taken.
        public static let readersFull = Code(.readersFull)
        /// A file of the store is damaged.
        public static let corruption = Code(.corruption)
        /// The directory is not a store, or a store of a format this version does not know.
        public static let formatMismatch = Code(.formatMismatch)
        /// The body does not have the digest it was declared with.
        public static let digestMismatch = Code(.digestMismatch)
        /// The body does not have the length it was declared with.
        public static let lengthMismatch = Code(.lengthMismatch)
        /// The body, key or metadata is larger than the limit.
        public static let tooLarge = Code(.tooLarge)
        /// The store was opened read-only.
        public static let readOnly = Code(.readOnly)
        /// This system or file system does not support the operation.
        public static let unsupported = Code(.unsupported)
        /// A write of the index failed in a way that ends every further use of the open store. Nothing is damaged:
        /// close all stores this process has open at the path, and open them again.
        public static let mustReopen = Code(.mustReopen)

        /// Bytes of a body in progress are missing, and no writer will add them.
        public static let incomplete = Code(.incomplete)
        /// A body in progress is no longer in the store: it was removed, displaced, or replaced by another put.
        public static let gone = Code(.gone)

        /// The store is encrypted, and the key is another one or missing; or it is not, and a key was given.
        public static let wrongKey = Code(.wrongKey)

        /// The name of the code.
        public var description: String { value.rawValue }
    }

    /// A call or a setting that helps. A program with its own interface names its own equivalent.
    public enum Remedy: Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// `Store.check(repair: true)`.
        case repair
        /// `Store.rebuildIndex(at:)`.
        case rebuildIndex
        /// `Store.setBudget(_:)` with more bytes, or without pins.
        case makeRoom
        /// `Store.setBudget(_:)` with more bytes.
        case raiseBudget
        /// `Store.setBudget(_:)` with a larger `Budget.largestEntry`.
        case raiseLargestEntry
        /// `Configuration.allowsOtherOwner`.
        case allowOtherOwner
        /// `Configuration.isReadOnly`.
        case openReadOnly

        /// The remedy in words, for a developer.
        public var description: String {
            switch self {
            case .repair: "call `Store.check(repair: true)`"
            case .rebuildIndex:
                "close the store in every process, then call `Store.rebuildIndex(at:)`, which keeps the entries that can "
                    + "still be read"
            case .makeRoom:
                "raise the budget or lower its free-disk floor (`Store.setBudget(_:)`, `cachectl budget`), or unpin "
                    + "entries"
            case .raiseBudget: "raise the budget (`Store.setBudget(_:)`, `cachectl budget`) or store it elsewhere"
            case .raiseLargestEntry:
                "raise `Budget.largestEntry` (`Store.setBudget(_:)`, `cachectl budget --largest-entry`)"
            case .allowOtherOwner:
                "open it as that user, choose another directory, or set `Configuration.allowsOtherOwner`"
            case .openReadOnly: "set `Configuration.isReadOnly`, or remount the file system"
            }
        }
    }

    /// The kind of error, by what the caller can do about it.
    public var code: Code
    /// The cause and the place of the error. Also how to fix it, unless a call does that, which `remedy` names.
    public var message: String
    /// The call or setting that helps; nil if there is none.
    public var remedy: Remedy?
    /// The path concerned, if there is one.
    public var path: FilePath?
    /// The key concerned, if there is one.
    public var key: Key?
    /// The keys of the puts and removals that could not be committed, at most 10,000 of them: in the errors of
    /// `Store.flush`, `Store.close` and `StoreEvent.commitFailed`. Empty in other errors.
    public internal(set) var keys: [Key] = []
    /// Number of puts and removals that could not be committed: more than `keys` has if there were more than 10,000.
    public internal(set) var keyCount = 0
    /// If an error of `Store.flush` or `Store.close` has several causes: an error for each, with its keys. The error
    /// itself is that of the first cause, with all keys. Empty if there is one cause.
    public internal(set) var failures: [LarderError] = []
    /// The error underneath: an `Errno` or an `LMDBError`.
    public var cause: (any Error)?

    /// Describes a failure.
    /// - Parameters:
    ///   - code: the kind of error, by what the caller can do about it.
    ///   - message: the cause, and how to fix it.
    ///   - remedy: the call that helps. Default: none.
    ///   - path: the file or directory concerned. Default: none.
    ///   - key: the key concerned. Default: none.
    ///   - cause: the error underneath. Default: none.
    public init(
        _ code: Code, _ message: String, remedy: Remedy? = nil, path: FilePath? = nil, key: Key? = nil,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.remedy = remedy
        self.path = path
        self.key = key
        self.cause = cause
    }

    /// The code, the message, the remedy and the cause if there are any.
    public var description: String {
        var text = "\(code): \(message)"
        if let remedy { text += ": \(remedy)" }
        if let cause { text += " (\(cause))" }
        if keyCount > 0 {
            let shown = keys.prefix(3).map(\.description).joined(separator: ", ")
            text += "; not committed: \(shown)" + (keyCount > 3 ? " and \(keyCount - 3) more" : "")
        }
        return text
    }
}
