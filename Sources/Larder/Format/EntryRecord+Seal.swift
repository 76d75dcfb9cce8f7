import CZlib

extension EntryRecord {
    /// Ties an entry to its key, to the digest of its body and to what it says of itself, so that a flipped bit does
    /// not make it an entry of another key or of another body: neither LMDB's pages nor its rows have checksums.
    ///
    /// Two words of 16 bits in the upper bits of two numbers that never get that high. A change goes unnoticed once in
    /// 65,536 times.
    struct Seal: Equatable {
        /// The first two bytes of the body's digest, little-endian; all their bits the other way round for a body in
        /// progress, so that no version of the engine takes one for a body.
        var digestTag: UInt16
        /// CRC-32 over the index key and the record, folded; without the hits, the stamp and the time of access, which
        /// change with every use.
        var check: UInt16

        static let shift: UInt64 = 48
        /// Ids of entries and blobs count from 1 and stay below.
        static let numberMask: UInt64 = (1 << 48) - 1

        static func tag(_ digest: Digest, isInProgress: Bool) -> UInt16 {
            let tag: UInt16 = digest.withBytes { $0.field(0) }
            return isInProgress ? ~tag : tag
        }
    }

    /// Sets the seal for the body with `digest`, as an entry of the index key `key`.
    mutating func seal(for key: [UInt8], _ digest: Digest) {
        seal = Seal(digestTag: Seal.tag(digest, isInProgress: progress != nil), check: 0)
        reseal(for: key)
    }

    /// Sets the seal again after a change of fields, for the same body. A record of format 1 stays one.
    mutating func reseal(for key: [UInt8]) {
        guard seal != nil else { return }
        let sum = check(key)
        seal?.check = sum
    }

    /// True if the record has no seal, or the right one for that index key.
    func isIntact(under key: [UInt8]) -> Bool {
        guard let seal else { return true }
        return seal.check == check(key)
    }

    /// True if the record has no seal, or was put with a body of that digest as far as the seal tells.
    func fits(_ digest: Digest) -> Bool {
        seal.map { $0.digestTag == Seal.tag(digest, isInProgress: progress != nil) } ?? true
    }

    /// True if the record is that of an entry with this blob as far as the two tell, complete or in progress.
    func isOf(_ head: BlobRecord) -> Bool {
        guard fits(head.digest), (progress == nil) == (head.encoding != .partial) else { return false }
        return progress.map { head.isDamaged || $0.ranges.end <= head.storedLength && $0.length == head.length } ?? true
    }

    private func check(_ key: [UInt8]) -> UInt16 {
        var still = self
        still.hits = 0
        still.stamp = 0
        still.accessed = 0
        still.seal?.check = 0
        return withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { [still] raw in
            still.write(to: raw)
            var sum = crc32(0, key, UInt32(truncatingIfNeeded: key.count))
            sum = crc32(sum, raw.baseAddress, UInt32(truncatingIfNeeded: raw.count))
            return UInt16(truncatingIfNeeded: sum ^ sum >> 16)
        }
    }
}
