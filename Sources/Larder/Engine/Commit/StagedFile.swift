/// A body file that is being written, or is written and waits for its commit, in `staging/`.
struct StagedFile: Sendable {
    let token: StagingToken
    private(set) var descriptor: OwnedDescriptor
    /// What encrypts it; nil in a store that is not encrypted.
    var seal: BodySeal?
    /// Bytes that it holds.
    var length: Int64 = 0
    /// How it holds the body.
    var encoding = BodyEncoding.identity
    /// What it is charged with, once written; see `Allocation`.
    var allocated: Int64 = 0
    /// Bytes held for it in the ledger.
    var reserved: Int64 = 0
    /// True if this process made the file: no one else uses blocks beyond its end.
    var isOwn = false

    init(token: StagingToken, descriptor: OwnedDescriptor, length: Int64 = 0, reserved: Int64 = 0, isOwn: Bool = false)
    {
        self.token = token
        self.descriptor = descriptor
        self.length = length
        self.reserved = reserved
        self.isOwn = isOwn
    }

    /// The file, to read and write what it holds.
    var content: BodyFile { BodyFile(descriptor: descriptor, seal: seal) }

    /// The file without its descriptor, for a file that is not read before the commit: thousands may wait for one
    /// commit.
    var closed: StagedFile { opened(as: .none) }

    /// The file with another descriptor.
    func opened(as descriptor: OwnedDescriptor) -> StagedFile {
        var copy = self
        copy.descriptor = descriptor
        return copy
    }
}

extension StagedFile {
    /// What a file of `length` bytes takes at most: whole blocks, and for a large one the blocks that list its extents.
    static func allocation(_ length: Int64) -> Int64 {
        (length + 4095) / 4096 * 4096 + (length > 4 << 20 ? 16384 + length / 1024 : 0)
    }
}
