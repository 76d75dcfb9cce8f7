import Larder

/// How the members of a package live with displacement.
public enum DisplacementMode: String, Sendable, Codable, CaseIterable {
    /// They stay until the package is removed.
    case pin
    /// Each is displaced like any other entry.
    case members
    /// They are displaced together, when none of them was used for as long as other entries that go. No reader sees a
    /// part of such a package.
    case whole
}

/// An installed package.
public struct InstalledPackage: Sendable, Hashable, Codable {
    /// Whether it is there.
    public enum State: String, Sendable, Codable {
        /// It is there. Members may have been displaced or replaced since: ``PackageStore/verify(_:isDeep:)`` tells.
        case installed
        /// Displaced as a whole: no member is found any more.
        case displaced
        /// It is being removed; a process that was killed has not finished that.
        case removing
    }

    /// Its name, one for each package of a store.
    public internal(set) var name: String
    /// The version, as the package gives it. Empty: it gives none.
    public internal(set) var version: String
    /// How its members live with displacement.
    public internal(set) var mode: DisplacementMode
    /// Where it came from: a path or a URL, as the caller said.
    public internal(set) var source: String
    /// The SHA-256 of its archive.
    public internal(set) var archiveDigest: String
    /// The SHA-256 of its list of members, by which increments know it.
    public internal(set) var listDigest: String
    /// When it was made, as it says; RFC 3339. Nil: it does not say.
    public internal(set) var created: String?
    /// When it was installed, in seconds since 1970.
    public internal(set) var installed: Double
    /// Responses in it.
    public internal(set) var memberCount: Int
    /// Bytes of its responses.
    public internal(set) var memberBytes: Int64
    /// Files of user data in it.
    public internal(set) var dataCount: Int
    /// Bytes of these.
    public internal(set) var dataBytes: Int64
    /// The public key that it is signed with, in Base64. Nil: it is not signed.
    public internal(set) var signer: String?
    /// Whether that key was one of those that the installer trusts.
    public internal(set) var isTrusted: Bool
    /// Whether it is there.
    public internal(set) var state: State
    /// Of a package that is being removed: whether its members stay.
    var keepsMembers: Bool?
    /// The URL that it was installed below, where one was given.
    var baseURL: String?
    /// Of the installation, for the keys of what belongs to it.
    var id: String

    /// What it takes in the store, about.
    var room: Int64 { memberBytes + dataBytes + Int64(memberCount + dataCount) * Self.rowBytes }

    /// What the rows of a response take, and what is lost to whole pages, about.
    static let rowBytes: Int64 = 2_048
}

/// What to do with a URL that something is stored for already.
public enum ConflictMode: String, Sendable, CaseIterable {
    /// The newer one stays: that with the later `Last-Modified`, or else the later `Date`, or the one that is fresh for
    /// longer.
    case keepNewer = "keep-newer"
    /// The member of the package takes its place.
    case replace
    /// What is stored stays.
    case keepExisting = "keep-existing"
}

/// How a package is installed.
public struct InstallOptions: Sendable {
    /// The name to install it under. Nil: the one that the package gives, or that of the file. Default: nil.
    public var name: String?
    /// How its members live with displacement. Nil: as before, and ``DisplacementMode/members`` where it was not
    /// installed. Default: nil.
    public var mode: DisplacementMode?
    /// What to do with a URL that something is stored for already. What an earlier version of the package brought is
    /// replaced in any case. Default: the newer one stays.
    public var conflicts = ConflictMode.keepNewer
    /// Where it came from, for the records. Nil: the path. Default: nil.
    public var source: String?
    /// The password of an encrypted archive. Default: nil.
    public var password: String?
    /// The keys of which one must have signed the package. Empty: none has to. Default: empty.
    public var trustedKeys: [PackageKey] = []
    /// Whether a package that is signed with another key, or not at all, may take the place of one whose key was
    /// trusted. Default: false.
    public var acceptsOtherSigner = false
    /// The URL that relative URLs of the manifest, those of the scheme `afcpkg`, and the members of an archive without
    /// a manifest are below. Nil: an archive without a manifest is taken for `https://HOST/PATH`. Default: nil.
    public var baseURL: String?
    /// Installs it although the same archive is installed already, so that members come back that were displaced.
    /// Default: false.
    public var restoresMembers = false
    /// What the archive may be at most.
    public var limits = ArchiveLimits()
    /// Told of what has been read, now and then, on another thread. Default: nil.
    public var onProgress: (@Sendable (InstallProgress) -> Void)?

    /// The defaults.
    public init() {}
}

/// How far an installation has come.
public struct InstallProgress: Sendable, Hashable {
    /// Files that were read.
    public var members: Int
    /// Files in the archive.
    public var totalMembers: Int
    /// Bytes that were read, unpacked.
    public var bytes: Int64
    /// Bytes in the archive, unpacked.
    public var totalBytes: Int64
}

/// What an installation did.
public struct InstallResult: Sendable, Hashable {
    /// The package as it is now.
    public var package: InstalledPackage
    /// Whether there was nothing to do: the same archive is installed already.
    public var wasInstalled = false
    /// Responses that were added, where nothing was stored.
    public var added = 0
    /// Responses that took the place of others.
    public var replaced = 0
    /// Responses that were there already, with the same content and fields.
    public var unchanged = 0
    /// URLs where what was stored is newer, or was to stay, and did.
    public var kept = 0
    /// Responses of the earlier version that this one does not have, and that were removed.
    public var removed = 0
    /// Responses that an increment does not bring, and that were displaced before.
    public var missing = 0
    /// Files of the archive that no manifest names; they were passed by.
    public var ignored = 0
}

/// What was found of an installed package.
public struct PackageReport: Sendable, Hashable {
    /// What was found of a member.
    public enum Finding: String, Sendable, CaseIterable {
        /// As it was installed.
        case intact
        /// Another response is stored for the URL: a newer one, or one that was kept when the package was installed.
        case replaced
        /// Displaced or removed.
        case missing
        /// The content does not match its digest any more.
        case damaged
    }

    /// How many members there are of each kind.
    public var counts: [Finding: Int] = [:]
    /// The URLs that are not intact, and what was found; the first 1,000.
    public var problems: [(url: String, finding: Finding)] = []
    /// Whether the list of members itself is there and readable.
    public var hasList = true

    /// Whether every member is as it was installed, or replaced by another response.
    public var isWhole: Bool { hasList && counts[.missing, default: 0] == 0 && counts[.damaged, default: 0] == 0 }

    /// Two reports are the same if they have found the same.
    public static func == (left: Self, right: Self) -> Bool {
        left.counts == right.counts && left.hasList == right.hasList
            && left.problems.elementsEqual(right.problems) { $0 == $1 }
    }

    /// By what was counted.
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
