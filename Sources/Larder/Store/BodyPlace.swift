import SystemPackage

/// Where the file of a body was when it was opened. Every hit of a large body has one, and few need its path, which is
/// joined when it is asked for.
struct BodyPlace: Sendable {
    enum Name: Sendable {
        /// In `blobs/`.
        case digest(Digest)
        /// In `staging/`.
        case token(StagingToken)
    }

    let directory: Directory
    let name: Name
    /// Where the body, or what is made of it, may stay.
    var tier: MemoryTier?

    /// True if the body stays in memory when it was read whole.
    func holds(_ length: ByteCount) -> Bool { tier?.holds(UInt64(length.bytes)) ?? false }

    /// Bytes of the whole body that were read: they may stay in memory.
    func hold(_ bytes: [UInt8]) -> [UInt8] {
        guard let tier, case .digest(let digest) = name else { return bytes }
        return tier.take(bytes, digest)
    }

    var path: FilePath {
        switch name {
        case .digest(let digest): directory.path(of: Layout.blob(BlobName(digest)))
        case .token(let token): directory.path(of: token.name)
        }
    }
}
