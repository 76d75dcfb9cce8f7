import Larder

/// Options for making a package.
public struct PackageOptions: Sendable {
    /// The name. Nil: that of the archive's file, without its extension. Default: nil.
    public var name: String?
    /// The version, at most 200 bytes of text without control characters. Default: empty.
    public var version = ""
    /// The time of creation, which is also the default for `Last-Modified` of files. Nil: now. Default: nil.
    public var created: Timestamp?
    /// The style of AFCache's manifest. It gets more fields if members need them. Nil: four fields, or three for a
    /// package without media types. Default: nil.
    public var style: ManifestStyle?
    /// Writes the list of members with digests as well. Without the list, the package cannot be signed, verified or
    /// used as a base for increments, but programs that know only AFCache's form find no unknown file in it. Default:
    /// true.
    public var hasList = true
    /// The archive of an earlier version. Only changes since that version are packed, and the package installs only
    /// over that version. Nil: everything is packed. Default: nil.
    public var base: String?
    /// The key that signs the package. Nil: it is not signed. Default: nil.
    public var signingKey: PackageSigningKey?
    /// The password for encrypting the members with AES-256. Names, lengths and times stay visible. Nil: no encryption.
    /// Default: nil.
    public var password: String?
    /// The password of ``base``, if it has one. Default: nil.
    public var basePassword: String?
    /// Writes a package that has neither responses nor user data. Default: true.
    package var writesEmpty = true

    /// The defaults.
    public init() {}
}

/// The files of a package, and the responses that they become.
public struct FolderOptions: Sendable {
    /// The folder with the files.
    public var folder: String
    /// The URL of the folder. Default: `http://localhost`.
    public var baseURL = "http://localhost"
    /// The seconds from `Last-Modified` to `Expires`. Nil: responses have no `Expires`. Default: nil.
    public var maxAge: Int64?
    /// Takes `Last-Modified` from each file. Default: false, it is the time at which the package is made.
    public var usesFileTimes = false
    /// Seconds that are added to `Last-Modified`. Default: 0.
    public var lastModifiedOffset: Int64 = 0
    /// The largest size of a file in bytes; longer files are left out. Nil: no limit. Default: nil.
    public var maxItemBytes: Int64?
    /// Packs files whose name, or the name of whose folder, begins with a dot. Default: false.
    public var includesHidden = false
    /// Patterns for paths in the folder: `*` (any text, slashes too), `?`, `[abc]`, `[a-c]` and `[!abc]`. Files that
    /// match one are left out.
    public var excludes: [String] = []
    /// Writes media types. Default: true.
    public var hasMediaTypes = true
    /// The media types.
    public var mediaTypes = MediaTypes()
    /// A folder of user data. Nil: none. Default: nil.
    public var dataFolder: String?
    /// The key of the user data: the first part of their names. Nil: none. Default: nil.
    public var dataKey: String?

    /// - Parameter folder: the folder with the files.
    public init(_ folder: String) { self.folder = folder }
}

/// The result of packing.
public struct PackageSummary: Sendable, Hashable {
    /// The name of the package.
    public var name: String
    /// The number of responses in it.
    public var members = 0
    /// The number of responses that are the same as in the earlier version, and were not packed again.
    public var unchanged = 0
    /// The bytes of the packed responses.
    public var bytes: Int64 = 0
    /// The number of files with user data.
    public var dataFiles = 0
    /// The URLs of all responses in it.
    public var urls: [String] = []
    /// The entries of the manifest, each with the name of its file.
    public var entries: [ManifestEntry] = []
    /// The paths and URLs that were left out, each with the reason. The first 1,000.
    public var skipped: [String: String] = [:]
}
