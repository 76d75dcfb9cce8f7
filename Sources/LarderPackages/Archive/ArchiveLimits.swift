import Larder

/// What an archive may be at most. An archive from elsewhere can claim anything: these limits keep time and memory in
/// bounds whatever it claims.
public struct ArchiveLimits: Sendable, Hashable {
    /// Members, directories included. About 350 bytes of memory are needed for each. Default: 1,000,000.
    public var members = 1_000_000
    /// Bytes of one member, unpacked. Default: 4 GiB.
    public var memberBytes = ByteCount.gibibytes(4)
    /// Bytes of all members, unpacked. Default: 64 GiB. A package must also fit the budget of its store.
    public var totalBytes = ByteCount.gibibytes(64)
    /// Bytes of a manifest or a list of members, in addition to 4 KiB for each file. Default: 64 MiB.
    public var manifestBytes = ByteCount.mebibytes(64)
    /// Bytes of one line of a manifest. Default: 256 KiB.
    public var lineBytes = ByteCount.kibibytes(256)

    /// The defaults.
    public init() {}
}
