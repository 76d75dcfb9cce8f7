import SystemPackage

/// Every name on disk. No other file of the engine spells one.
enum Layout {
    static let tag = "CACHEDIR.TAG"
    static let format = "FORMAT"
    /// The sealed key of an encrypted store.
    static let encryption = "encryption"
    /// `encryption` while it is written.
    static let newEncryption = "encryption.new"
    /// `FORMAT` while it is written.
    static let newFormat = "FORMAT.new"
    static let index = "index"
    static let data = "data.mdb"
    static let lock = "lock.mdb"
    static let ledger = "ledger"
    static let counters = "counters"
    /// Directory in `index/` while a damaged index is read out.
    static let rebuilt = "rebuilt"
    static let blobs = "blobs"
    static let staging = "staging"
    static let trash = "trash"
    static let quarantine = "quarantine"

    static let directories = [index, blobs, staging, trash, quarantine]

    /// What `CACHEDIR.TAG` holds, so that backup tools skip the store (bford.info/cachedir).
    static let tagContents = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This file marks a cache directory made by Larder. Its contents can be made anew.
        # For information about cache directory tags see https://bford.info/cachedir/

        """

    /// `ab/<64 hex>`: bodies spread over 256 directories by the first byte of their names.
    static func blob(_ name: BlobName) -> String {
        let digits = name.hexadecimal
        return digits.prefix(2) + "/" + digits
    }

    /// The 256 directories under `blobs/`.
    static var shards: [String] { (0..<256).map { hex(UInt64($0), width: 2) } }

    /// `<16 hex instance>.lock` in `staging/`: locked for as long as the instance lives.
    static func instanceLock(_ instance: UInt64) -> String { hex(instance, width: 16) + ".lock" }

    /// `<16 hex instance>-<16 hex sequence>-<64 hex>` in `trash/`, with the name that the body had.
    static func trash(_ token: StagingToken, _ name: BlobName) -> String { token.name + "-" + name.hexadecimal }

    /// The parts of a name in `trash/`; nil if it is not one.
    static func parseTrash(_ name: String) -> (token: StagingToken, name: BlobName)? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let token = StagingToken(name: parts[0] + "-" + parts[1]),
            let digest = Digest(hexadecimal: parts[2])
        else { return nil }
        return (token, BlobName(digest))
    }

    /// The instance a file in `staging/` belongs to; nil if the name is not one of ours.
    static func instance(ofStaged name: String) -> UInt64? {
        if name.hasSuffix(".lock"), name.utf8.count == 21 { return UInt64(name.prefix(16), radix: 16) }
        return StagingToken(name: name)?.instance
    }

    static func hex(_ value: UInt64, width: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// The name of a body file: the digest of the body, or what stands for it in an encrypted store. `StoreFiles` tells
/// which.
struct BlobName: Hashable, Sendable {
    private let number: Digest

    init(_ number: Digest) { self.number = number }

    var hexadecimal: String { number.hexadecimal }
}

/// The name of a file while it is written: which open store writes it, and a running number there.
struct StagingToken: Hashable, Sendable {
    var instance: UInt64
    var sequence: UInt64

    init(instance: UInt64, sequence: UInt64) {
        self.instance = instance
        self.sequence = sequence
    }

    init?(name: some StringProtocol) {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 16, parts[1].utf8.count == 16,
            let instance = UInt64(parts[0], radix: 16), let sequence = UInt64(parts[1], radix: 16)
        else { return nil }
        self.init(instance: instance, sequence: sequence)
    }

    /// `<16 hex>-<16 hex>`.
    var name: String { Layout.hex(instance, width: 16) + "-" + Layout.hex(sequence, width: 16) }

    /// Key of the row in the `unpublished` database: big-endian, so that an instance's rows are neighbours.
    var indexKey: [UInt8] { bigEndian(instance) + bigEndian(sequence) }

    init?(indexKey: UnsafeRawBufferPointer) {
        guard indexKey.count == 16 else { return nil }
        self.init(
            instance: UInt64(bigEndian: indexKey.loadUnaligned(as: UInt64.self)),
            sequence: UInt64(bigEndian: indexKey.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}

/// The eight bytes of `value`, most significant first: they sort as the numbers do.
func bigEndian(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
