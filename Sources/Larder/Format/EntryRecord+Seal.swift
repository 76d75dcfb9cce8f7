import CZlib

extension EntryRecord {
    /// Ties an entry to its key, to the digest of its body and to what it says of itself, so that a flipped bit does
    /// not make it an entry of another key or of another body: neither LMDB's pages nor its rows have checksums.
    ///
    /// Two words of 16 bits in the upper bits of two numbers that never get that high. A change goes unnoticed once in
    /// 65,536 times. An embedded body has eight bytes of its digest in place of the first of them.
    struct Seal: Equatable {
        /// The first two bytes of the body's digest, little-endian; all their bits the other way round for a body in
        /// progress, so that no version of the engine takes one for a body. 0 for an embedded one.
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
        seal = Seal(digestTag: embedded == nil ? Seal.tag(digest, isInProgress: progress != nil) : 0, check: 0)
        reseal(for: key)
    }

    /// Sets the seal again after a change of fields, for the same body. A record without one gets none.
    mutating func reseal(for key: [UInt8]) {
        guard seal != nil else { return }
        let record = self
        let sum = withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { raw in
            record.write(to: raw)
            // The body has a check of its own.
            let end = raw.count - (record.embedded?.bytes.count ?? 0)
            return Seal.check(clearing: UnsafeMutableRawBufferPointer(rebasing: raw[..<end]), under: key)
        }
        seal?.check = sum
    }

    /// True if the record has no seal, or was put with a body of that digest as far as the seal tells.
    func fits(_ digest: Digest) -> Bool {
        if let embedded { return embedded.digestPrefix == Embedded.prefix(digest) }
        return seal.map { $0.digestTag == Seal.tag(digest, isInProgress: progress != nil) } ?? true
    }

    /// True if the record is that of an entry with this blob as far as the two tell, complete or in progress.
    func isOf(_ head: BlobRecord) -> Bool {
        guard fits(head.digest), (progress == nil) == (head.encoding != .partial) else { return false }
        return progress.map { head.isDamaged || $0.ranges.end <= head.storedLength && $0.length == head.length } ?? true
    }
}

extension EntryView {
    /// True if the record has no seal, or the right one for that index key, whatever an embedded body is like.
    func isIntact(under key: [UInt8]) -> Bool {
        !isSealed || check(under: key) == raw.field(14, as: UInt16.self)
    }

    private func check(under key: [UInt8]) -> UInt16 {
        let end = parts?.body.lowerBound ?? raw.count
        return withUnsafeTemporaryAllocation(byteCount: end, alignment: 8) { copy in
            copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[..<end]))
            return EntryRecord.Seal.check(clearing: copy, under: key)
        }
    }
}

extension EntryRecord.Seal {
    /// The check of an encoded record, without an embedded body, under an index key.
    /// - Parameter raw: the record; what the check leaves out becomes 0.
    fileprivate static func check(clearing raw: UnsafeMutableRawBufferPointer, under key: [UInt8]) -> UInt16 {
        EntryRecord.clearWhatUseChanges(raw)
        var sum = crc32(0, key, UInt32(truncatingIfNeeded: key.count))
        sum = crc32(sum, raw.baseAddress, UInt32(truncatingIfNeeded: raw.count))
        return UInt16(truncatingIfNeeded: sum ^ sum >> 16)
    }
}
