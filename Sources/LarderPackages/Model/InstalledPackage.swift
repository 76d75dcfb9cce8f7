import Larder

/// The effect of displacement on the members of a package.
public enum DisplacementMode: String, Sendable, Codable, CaseIterable {
    /// Members stay until the package is removed.
    case pin
    /// Members are displaced one by one, like any other entry.
    case members
    /// Members are displaced together, once none of them has been used for as long as other entries that are displaced.
    /// Readers never find only some of them.
    case whole
}

/// An installed package.
public struct InstalledPackage: Sendable, Hashable, Codable {
    /// The state of a package.
    public enum State: String, Sendable, Codable {
        /// The package is installed. Members may have been displaced or replaced since then:
        /// ``PackageStore/verify(_:isDeep:)`` reports them.
        case installed
        /// The package was displaced as a whole: no reader finds its members.
        case displaced
        /// The package is being removed, or a process was killed before it had finished the removal.
        case removing
    }

    /// The name, which is unique in the store.
    public internal(set) var name: String
    /// The version that the package states; empty if it states none.
    public internal(set) var version: String
    /// The effect of displacement on its members.
    public internal(set) var mode: DisplacementMode
    /// The origin of the archive: a path or a URL, as the caller gave it.
    public internal(set) var source: String
    /// The SHA-256 of its archive.
    public internal(set) var archiveDigest: String
    /// The SHA-256 of its list of members, which identifies it for increments.
    public internal(set) var listDigest: String
    /// The time of creation that the package states, in the form of RFC 3339. Nil: it states none.
    public internal(set) var created: String?
    /// The time of installation, in seconds since 1970.
    public internal(set) var installed: Double
    /// The number of its responses.
    public internal(set) var memberCount: Int
    /// The bytes of its responses.
    public internal(set) var memberBytes: Int64
    /// The number of its files with user data.
    public internal(set) var dataCount: Int
    /// The bytes of these files.
    public internal(set) var dataBytes: Int64
    /// The public key that signed it, in Base64. Nil: it is not signed.
    public internal(set) var signer: String?
    /// True if the installer trusted that key.
    public internal(set) var isTrusted: Bool
    /// The state.
    public internal(set) var state: State
    /// For a package that is being removed: keeps the members.
    var keepsMembers: Bool?
    /// The base URL of the installation, if one was given.
    var baseURL: String?
    /// How its members stand beside other responses. Nil: ``ConflictMode/keepNewer``.
    var conflicts: ConflictMode?
    /// The origins of its members. Nil: too many to list.
    var origins: [String]?
    /// With ``ConflictMode/replace``, until what was stored before this moment is removed: in milliseconds since 1970.
    var supersedes: Int64?
    /// The generation of its entries (`PackageKeys`).
    var id: String

    /// The approximate space that it needs in the store.
    var room: Int64 { memberBytes + dataBytes + Int64(memberCount + dataCount) * Self.rowBytes }

    /// The approximate space for the rows of a response, including losses to whole pages.
    static let rowBytes: Int64 = 2_048
}

/// The rule for a member beside another stored response for its URL. Members are stored beside such responses: the
/// cache chooses when it answers a request.
public enum ConflictMode: String, Sendable, Codable, CaseIterable {
    /// A fresh response for the URL is used. If it is stale, the one with the later `Date` is used, as between any
    /// stored responses (RFC 9111 section 4).
    case keepNewer = "keep-newer"
    /// Responses that were stored before the installation are removed, and no longer used from its commit on.
    case replace
    /// The member is used only if there is no other response for the URL, fresh or stale.
    case keepExisting = "keep-existing"
}

/// Options for installing a package.
public struct InstallOptions: Sendable {
    /// The name in the store. Nil: the name that the package states, or that of the file. Default: nil.
    public var name: String?
    /// The effect of displacement on its members. Nil: as before, or ``DisplacementMode/members`` for a package that
    /// was not installed. Default: nil.
    public var mode: DisplacementMode?
    /// The rule for members whose URL has another stored response. Members of an earlier version of the package are
    /// replaced in every mode. Default: the newer response is used.
    public var conflicts = ConflictMode.keepNewer
    /// The origin of the archive, for the records. Nil: its path. Default: nil.
    public var source: String?
    /// The password of an encrypted archive. Default: nil.
    public var password: String?
    /// The trusted keys, one of which must have signed the package. Empty: no signature is required. Default: empty.
    public var trustedKeys: [PackageKey] = []
    /// Allows a package that is unsigned, or signed with another key, to replace one whose key was trusted. Default:
    /// false.
    public var acceptsOtherSigner = false
    /// The base URL for relative URLs of the manifest, for URLs with the scheme `afcpkg`, and for the members of an
    /// archive without a manifest. Nil: a member without a manifest becomes the response for `https://HOST/PATH`, and
    /// `afcpkg` URLs are below `http://localhost`. Default: nil.
    public var baseURL: String?
    /// Installs the package even if the same archive is already installed, to bring back displaced members. Default:
    /// false.
    public var restoresMembers = false
    /// The limits for the archive.
    public var limits = ArchiveLimits()
    /// Called now and then with the progress of reading, on another thread. Default: nil.
    public var onProgress: (@Sendable (InstallProgress) -> Void)?

    /// The defaults.
    public init() {}
}

/// The progress of an installation.
public struct InstallProgress: Sendable, Hashable {
    /// The number of files read so far.
    public var members: Int
    /// The number of files in the archive.
    public var totalMembers: Int
    /// The unpacked bytes read so far.
    public var bytes: Int64
    /// The unpacked bytes of the archive.
    public var totalBytes: Int64
}

/// The result of an installation.
public struct InstallResult: Sendable, Hashable {
    /// The package as it is now.
    public var package: InstalledPackage
    /// True if there was nothing to do because the same archive is already installed.
    public var wasInstalled = false
    /// The number of responses that the earlier version does not have.
    public var added = 0
    /// The number of responses that differ from those of the earlier version.
    public var replaced = 0
    /// The number of responses that the earlier version has with the same content and fields.
    public var unchanged = 0
    /// The number of responses of the earlier version that this version does not have.
    public var removed = 0
    /// The number of responses that the increment does not contain and that were displaced earlier.
    public var missing = 0
    /// The number of ignored files in the archive, which no manifest names.
    public var ignored = 0
}

/// The result of checking an installed package.
public struct PackageReport: Sendable, Hashable {
    /// The state of a member.
    public enum Finding: String, Sendable, CaseIterable {
        /// The member is as it was installed.
        case intact
        /// The member was displaced or removed.
        case missing
        /// The content does not match its digest.
        case damaged
    }

    /// The number of members in each state.
    public var counts: [Finding: Int] = [:]
    /// The URLs of members that are not intact, with their state; the first 1,000.
    public var problems: [(url: String, finding: Finding)] = []
    /// True if the list of members itself exists and is readable.
    public var hasList = true

    /// True if every member is as it was installed.
    public var isWhole: Bool { hasList && counts[.missing, default: 0] == 0 && counts[.damaged, default: 0] == 0 }

    /// Compares the findings of two reports.
    public static func == (left: Self, right: Self) -> Bool {
        left.counts == right.counts && left.hasList == right.hasList
            && left.problems.elementsEqual(right.problems) { $0 == $1 }
    }

    /// Hashes the counts.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(counts)
        hasher.combine(hasList)
    }
}

/// A member of an installed package, from its list.
public struct PackageMember: Sendable, Hashable {
    /// The URL.
    public let url: String
    /// The SHA-256 of the content.
    public let digest: Digest
    /// Its length in bytes.
    public let length: Int64
    /// The status.
    public let status: Int
}
