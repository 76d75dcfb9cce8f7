import SystemPackage

/// What went wrong in a store, what the caller can do about it, and where.
///
/// A miss is not an error: lookups return nil. Every message names the path or the key and the remedy.
public struct LarderError: Error, Sendable, CustomStringConvertible {
    /// What the caller can do about it.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case invalidArgument, closed, locked, io, noSpace, mapFull, readersFull, corruption
            case formatMismatch, digestMismatch, lengthMismatch, tooLarge, cancelled, readOnly, unsupported, mustReopen
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// An argument is out of its documented range.
        public static let invalidArgument = Code(.invalidArgument)
        /// The store, reader or writer was closed before.
        public static let closed = Code(.closed)
        /// Another program holds what is needed.
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
        /// The caller cancelled.
        public static let cancelled = Code(.cancelled)
        /// The store was opened read-only.
        public static let readOnly = Code(.readOnly)
        /// Not possible on this system or file system.
        public static let unsupported = Code(.unsupported)
        /// A write of the index failed in a way that ends every further use of the open store. Nothing is damaged: close all
        /// stores this process has open at the path, and open them again.
        public static let mustReopen = Code(.mustReopen)

        /// The name of the code.
        public var description: String { value.rawValue }
    }

    /// What the caller can do about it.
    public var code: Code
    /// What went wrong, where, and how to mend it.
    public var message: String
    /// The path concerned, where there is one.
    public var path: FilePath?
    /// The key concerned, where there is one.
    public var key: Key?
    /// The error underneath: an `Errno` or an `LMDBError`.
    public var cause: (any Error)?

    /// Describes a failure.
    public init(
        _ code: Code, _ message: String, path: FilePath? = nil, key: Key? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.key = key
        self.cause = cause
    }

    /// The code, the message, and the cause if there is one.
    public var description: String {
        var text = "\(code): \(message)"
        if let cause { text += " (\(cause))" }
        return text
    }
}
