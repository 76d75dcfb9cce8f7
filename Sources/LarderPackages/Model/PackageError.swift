import Larder
import SystemPackage

/// An error while a package is read, installed, made or removed.
///
/// If an installation fails, the store is unchanged. A store that fails throws `LarderError`, and a cancelled task
/// `CancellationError`.
public struct PackageError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: String, Sendable, CaseIterable {
        /// The file is not a zip archive, or its directory is damaged or truncated.
        case notAnArchive
        /// A member cannot be read: its data is truncated or damaged, or its CRC-32 does not match.
        case damagedMember
        /// The name of a member is invalid, or leads out of the directory that it would be unpacked in.
        case unsafeName
        /// A member is a symbolic link, or anything else that is not a file.
        case notAFile
        /// Two members have the same name, or two entries of the manifest have the same URL or member.
        case duplicate
        /// There are more or larger members than the limits allow, or a member is longer than the archive states.
        case tooLarge
        /// Members share their data, as in some zip bombs.
        case overlap
        /// The archive is encrypted, and no password was given.
        case passwordRequired
        /// The password is wrong.
        case wrongPassword
        /// A member is compressed or encrypted in a way that is not supported.
        case unsupported
        /// A manifest has an invalid line.
        case badManifest
        /// A member that the manifest names is not in the archive.
        case missingMember
        /// A member does not have the digest or the length that the manifest gives.
        case digestMismatch
        /// The package is unsigned, its key is not trusted, or its signature does not match.
        case untrusted
        /// The package needs another version of itself to be installed, or members of that version that are missing.
        case missingBase
        /// The store has no room for the package: it exceeds the budget, alone or together with other pinned packages,
        /// or the free space on the disk.
        case exceedsBudget
        /// A name that no package can have.
        case invalidName
        /// There is no installed package of this name.
        case notInstalled
        /// Another process or task is installing or removing a package in this store.
        case busy
        /// A file cannot be read or written; `cause` says why.
        case io
    }

    /// The kind of error.
    public let code: Code
    /// A description of the error.
    public let message: String
    /// The archive, if there is one.
    public let archive: FilePath?
    /// The member, URL or line of the archive, if there is one.
    public let member: String?
    /// The underlying error, such as an `Errno`.
    public let cause: (any Error)?

    /// Describes a failure.
    ///
    /// - Parameters:
    ///   - code: the kind of error.
    ///   - message: a description of the error.
    ///   - archive: the archive. Default: none.
    ///   - member: the member, URL or line. Default: none.
    ///   - cause: the underlying error. Default: none.
    public init(
        _ code: Code, _ message: String, archive: FilePath? = nil, member: String? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.archive = archive
        self.member = member
        self.cause = cause
    }

    /// The code, the archive, the member and the message.
    public var description: String {
        let place = [archive?.string, member.map { Key($0).description }].compactMap { $0 }.joined(separator: ": ")
        return "\(code.rawValue): " + (place.isEmpty ? "" : place + ": ") + message + (cause.map { " (\($0))" } ?? "")
    }
}
