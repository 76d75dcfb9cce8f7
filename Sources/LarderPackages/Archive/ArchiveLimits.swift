import Larder

/// Upper limits for an archive. An archive from elsewhere can claim anything; these limits bound time and memory in any
/// case.
public struct ArchiveLimits: Sendable, Hashable {
    /// The number of members, including directories. Each needs about 350 bytes of memory. Default: 1,000,000.
    public var members = 1_000_000
    /// The size of one unpacked member. Default: 4 GiB.
    public var memberBytes = ByteCount.gibibytes(4)
    /// The size of all unpacked members. Default: 64 GiB. A package must also fit the budget of its store.
    public var totalBytes = ByteCount.gibibytes(64)
    /// How many times its own size an archive may have when it is unpacked. It holds for archives that unpack to more
    /// than 64 MiB: in a small one a page of zeros would already exceed it. Text packs to a tenth, zeros to a
    /// thousandth. Default: 100.
    public var ratio = 100
    /// The size of a manifest or a list of members, in addition to 4 KiB for each file. Default: 64 MiB.
    public var manifestBytes = ByteCount.mebibytes(64)
    /// The length of one line of a manifest. Default: 256 KiB.
    public var lineBytes = ByteCount.kibibytes(256)

    /// The defaults.
    public init() {}

    /// Unpacked bytes that need no ratio.
    static let smallBytes: Int64 = 64 << 20
}
