import Locks

/// The body files that were opened lately: to derive the keys of one takes longer than to decrypt a chunk of it.
final class SealMemory: Sendable {
    private struct Known {
        let head: [UInt8]
        let digest: Digest
        let length: UInt64
        let encoding: BodyEncoding
        let seal: BodySeal
    }

    private static let count = 64
    private let known = EngineMutex([Known?](repeating: nil, count: SealMemory.count))

    private static func slot(_ digest: Digest) -> Int { digest.withBytes { Int($0[0]) % count } }

    /// The seal of a file of a complete body, if one with the same head was opened as that of the same body.
    /// - Parameter head: the first bytes of the file.
    func seal(_ head: [UInt8], of body: BlobRecord) -> BodySeal? {
        known.withLock { known in
            guard let one = known[Self.slot(body.digest)], one.digest == body.digest, one.head == head,
                one.length == body.storedLength, one.encoding == body.encoding
            else { return nil }
            return one.seal
        }
    }

    func note(_ seal: BodySeal, _ head: [UInt8], of body: BlobRecord) {
        let one = Known(
            head: head, digest: body.digest, length: body.storedLength, encoding: body.encoding, seal: seal)
        known.withLock { $0[Self.slot(body.digest)] = one }
    }
}
