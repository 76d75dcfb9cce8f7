import Larder
import SystemPackage

/// Why a package could not be read, installed, made or removed.
///
/// A package that could not be installed leaves the store as it was. A store that fails throws `LarderError`, and a
/// cancelled task `CancellationError`.
public struct PackageError: Error, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: String, Sendable, CaseIterable {
        /// The file is not a zip archive, or its directory is damaged or cut off.
        case notAnArchive
        /// A member cannot be read: its data are cut off or damaged, or its CRC-32 does not match.
        case damagedMember
        /// The name of a member would leave the directory that it is unpacked in, or is invalid.
        case unsafeName
        /// A member is a symbolic link, or anything else that is not a file.
        case notAFile
        /// Two members have one name, or two entries of the manifest one URL or one member.
        case duplicate
        /// The members are more, or larger, than the limits allow, or longer than the archive says.
        case tooLarge
        /// Members share their data, as those of some bombs do.
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
        /// The package is not signed, or not by one of the keys that are trusted, or its signature does not match.
        case untrusted
        /// The package needs another version of itself to be installed, or members of it that are gone.
        case missingBase
        /// The package is larger than the store may become, or its pinned members are.
        case exceedsBudget
        /// A name that no package can have.
        case invalidName
        /// There is no installed package of this name.
        case notInstalled
        /// Another process, or another task, installs or removes a package of this store.
        case busy
        /// A file cannot be read or written; `cause` says why.
        case io
    }

    /// What is wrong.
    public let code: Code
    /// What is wrong, in words.
    public let message: String
    /// The archive, where there is one.
    public let archive: FilePath?
    /// The member, URL or line of the archive, where there is one.
    public let member: String?
    /// The error underneath, such as an `Errno`.
    public let cause: (any Error)?

    /// Describes a failure.
    ///
    /// - Parameters:
    ///   - code: what is wrong.
    ///   - message: the same in words.
    ///   - archive: the archive. Default: none.
    ///   - member: the member, URL or line. Default: none.
    ///   - cause: the error underneath. Default: none.
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
