import Larder

/// How a package is made.
public struct PackageOptions: Sendable {
    /// Its name. Nil: that of the archive's file, without its extension. Default: nil.
    public var name: String?
    /// Its version, any text. Default: empty.
    public var version = ""
    /// When it is made: the `Last-Modified` of files, where nothing else is said. Nil: now. Default: nil.
    public var created: Timestamp?
    /// How AFCache's manifest is written. Its form is raised where members need it. Nil: four fields, three for a
    /// package without media types. Default: nil.
    public var style: ManifestStyle?
    /// Whether the list of members with digests is written, too. Without it there is nothing to sign, to verify or to
    /// make increments with, and programs that know AFCache's form only see no file that they do not know. Default:
    /// true.
    public var hasList = true
    /// The archive of an earlier version: only what has changed is packed, and the package installs where that version
    /// is. Nil: everything is packed. Default: nil.
    public var base: String?
    /// Signs the package. Default: nil.
    public var signingKey: PackageSigningKey?
    /// Encrypts the members with AES-256. Names, lengths and times stay visible. Default: nil.
    public var password: String?
    /// The password of ``base``, where it has one. Default: nil.
    public var basePassword: String?

    /// The defaults.
    public init() {}
}

/// What a package of files has in it.
public struct FolderOptions: Sendable {
    /// The folder with the files.
    public var folder: String
    /// The URL of the folder. Default: `http://localhost`.
    public var baseURL = "http://localhost"
    /// How long responses are fresh from `Last-Modified` on, in seconds. Nil: they have no `Expires`. Default: nil.
    public var maxAge: Int64?
    /// Whether `Last-Modified` is that of the file. Default: false, it is the time at which the package is made.
    public var usesFileTimes = false
    /// Seconds that are added to `Last-Modified`. Default: 0.
    public var lastModifiedOffset: Int64 = 0
    /// Bytes of a file; longer ones are left out. Nil: no limit. Default: nil.
    public var maxItemBytes: Int64?
    /// Whether files are packed that begin with a dot, or are in such a folder. Default: false.
    public var includesHidden = false
    /// Patterns of fnmatch(3) for paths in the folder; what matches one is left out. `*` also stands for slashes.
    public var excludes: [String] = []
    /// Whether media types are written. Default: true.
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

/// What was packed.
public struct PackageSummary: Sendable, Hashable {
    /// The name of the package.
    public var name: String
    /// Responses in it.
    public var members = 0
    /// Of these, those that are as in the earlier version, and were not packed again.
    public var unchanged = 0
    /// Bytes of the responses that were packed.
    public var bytes: Int64 = 0
    /// Files of user data.
    public var dataFiles = 0
    /// The URLs of all responses in it.
    public var urls: [String] = []
    /// The entries of the manifest, with the name of the file of each.
    public var entries: [ManifestEntry] = []
    /// What was left out, and why: a path or URL, and the reason. The first 1,000.
    public var skipped: [String: String] = [:]
}
