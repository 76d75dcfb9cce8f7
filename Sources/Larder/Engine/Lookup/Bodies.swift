import LMDB

/// The bytes that entries lead to: files are opened, and compared with their digests where that is due; what there is
/// with a digest is found. Without state of its own.
final class Bodies: EnginePart {
    let context: EngineContext
    private let damage: Damage
    private let tier: MemoryTier
    /// True if every body is compared with its digest before it is returned.
    let isVerifying: Bool

    init(context: EngineContext, damage: Damage, tier: MemoryTier) {
        self.context = context
        self.damage = damage
        self.tier = tier
        isVerifying = context.configuration.verification == .always
    }

    /// Opens the file of a hit and compares it with its record: its kind and length, and its bytes if that check is
    /// due. Nil if the file is missing or does not match its record; the latter is damage.
    /// - Parameters:
    ///   - isDiscarded: true also searches `trash/`.
    ///   - mayWait: false leaves damage to the next lookup, as recording it waits for the disk.
    ///   - decodesLater: true leaves a short body, too, compressed or encrypted until it is read.
    func open(
        _ head: BlobRecord, _ blob: UInt64, isDiscarded: Bool, mayWait: Bool = true, decodesLater: Bool = false
    ) throws -> Body? {
        let isForTier = tier.holds(head.length)
        if isForTier, let bytes = tier.bytes(of: head.digest) { return Body(bytes) }
        let found: OwnedDescriptor?
        do {
            found = try files.openBlob(head)
        } catch {
            // A process that only reads the store may lack the right to open it.
            guard !damage.isReadOnly, let fault = files.fault(opening: head, error) else { throw error }
            if mayWait { try damage.quarantine(blob, head, fault) }
            return nil
        }
        guard let file = try found ?? (isDiscarded ? files.openDiscarded(head) : nil) else { return nil }
        var fault = try files.fault(of: file, head)
        if fault == nil, damage.isDue(head, blob) || found == nil {
            if try files.matches(file, head) {
                damage.noteVerified(blob)
            } else {
                fault = "the bytes of the file do not match the digest"
            }
        }
        if let fault {
            if mayWait { try damage.quarantine(blob, head, fault) }
            return nil
        }
        let place = BodyPlace(
            directory: files.blobs, name: .digest(head.digest), tier: tier.fits(head.length) ? tier : nil)
        // As bytes of a file, which no one takes for those of the body.
        let own = BodyPlace(directory: files.blobs, name: .digest(head.digest))
        guard let stored = try stored(file, at: head.encoding == .gzip ? own : place, head, blob, mayWait: mayWait)
        else { return nil }
        guard head.encoding == .gzip else {
            if files.cipher == nil || decodesLater || head.length > Self.longestDecoded { return stored }
            return try decoded(stored, mayWait: mayWait)
        }
        let member = stored
        let body = body(of: member, heldAt: place, head, blob)
        return decodesLater || head.length > Self.longestDecoded ? body : try decoded(body, mayWait: mayWait)
    }

    /// The body in memory; nil if it is damaged, or that is not to be waited for.
    private func decoded(_ body: Body, mayWait: Bool) throws -> Body? {
        if !mayWait { return nil }
        do {
            return Body(try body.bytes())
        } catch let error as LarderError where error.code == .corruption {
            return nil
        }
    }

    /// What a file holds; nil if it is not encrypted as that of the body.
    private func stored(
        _ file: OwnedDescriptor, at place: BodyPlace, _ head: BlobRecord, _ blob: UInt64, mayWait: Bool
    ) throws -> Body? {
        let length = Int64(clamping: head.storedLength)
        if files.cipher == nil { return Body(file: file, at: place, length: ByteCount(length)) }
        do {
            let path = files.blobs.path(of: Layout.blob(files.name(of: head.digest)))
            let damage = damage
            return Body(
                sealed: SealedBody(try files.bodyFile(file, head), at: place, path, length: length) {
                    damage.quarantineLater(blob, head, $0)
                })
        } catch let fault as SealDamage {
            if mayWait { try damage.quarantine(blob, head, "its file is damaged: \(fault)") }
            return nil
        }
    }

    /// A body that is longer is decompressed or decrypted when it is read; a shorter one at once, so that damage makes
    /// a miss.
    private static let longestDecoded: UInt64 = 1 << 20

    /// The body of a gzip member, decompressed as it is read.
    func body(of member: Body, heldAt place: BodyPlace? = nil, _ head: BlobRecord, _ blob: UInt64) -> Body {
        let damage = damage
        return Body(
            compressed: CompressedBody(member, heldAt: place, length: Int64(clamping: head.length)) {
                damage.quarantineLater(blob, head, $0)
            })
    }

    /// A copy of a body in the index; nil where its bytes are compared with the digest, and do not match it.
    @inline(__always)
    func soundBytes(_ value: UnsafeRawBufferPointer, _ head: BlobRecord, _ blob: UInt64) throws -> [UInt8]? {
        if head.length >= MemoryTier.leastInlineBytes || head.encoding == .gzip, tier.holds(head.length) {
            if let held = tier.bytes(of: head.digest) { return held }
            return try soundCopy(value, head, blob).map { tier.take($0, head.digest) }
        }
        return try soundCopy(value, head, blob)
    }

    @inline(__always)
    private func soundCopy(_ value: UnsafeRawBufferPointer, _ head: BlobRecord, _ blob: UInt64) throws -> [UInt8]? {
        let bytes = BlobRecord.inlineBytes(value)
        if head.encoding == .gzip || isVerifying {
            guard let body = try head.body(ofInline: bytes), !isVerifying || Digest.of(body) == head.digest else {
                damage.quarantineLater(blob, head, "the bytes in the index do not match the digest")
                return nil
            }
            return body
        }
        return Array(bytes)
    }

    /// What was made of the body with a digest.
    /// - Parameters:
    ///   - kind: the number of a `HeldKind`.
    ///   - isCounted: false for a look that follows another one.
    @inline(__always)
    func held(_ kind: Int, _ digest: Digest, isCounted: Bool = true) -> (any Sendable)? {
        tier.value(kind, of: digest, isCounted: isCounted)
    }

    /// As above, made in one of two ways: whether in the second.
    @inline(__always)
    func held(_ kind: Int, or other: Int?, _ digest: Digest) -> (value: any Sendable, isOther: Bool)? {
        if let other { return tier.value(kind, or: other, of: digest) }
        return held(kind, digest).map { ($0, false) }
    }

    // MARK: Content

    /// The bytes with a digest; nil where no entry in the index has them.
    /// - Parameter walks: whether all entries are looked at, if it takes that to find a small body.
    func findBody(_ digest: Digest, walks: Bool = true) throws -> Body? {
        for attempt in 0..<3 {
            let found: Content? = try read { try content(digest, $0) }
            switch found {
            case nil: return try strays(walks ? [digest] : [])[digest].map { Body($0) }
            case .inline(let bytes): return Body(bytes)
            case .file(let head, let blob):
                let isDiscarded = attempt > (damage.isReadOnly ? 0 : 1)
                if let body = try open(head, blob, isDiscarded: isDiscarded) { return body }
                if attempt == 1 { try damage.reportVanished(blob, head) }
            }
        }
        return nil
    }

    /// As above for many, as one snapshot of the index has them.
    func findBodies(_ digests: [Digest]) throws -> [Body?] {
        let found = try read { transaction in try digests.map { try content($0, transaction) } }
        let strays = try strays(zip(digests, found).compactMap { $1 == nil ? $0 : nil })
        return try zip(digests, found).map { digest, content in
            switch content {
            case nil: strays[digest].map { Body($0) }
            case .inline(let bytes): Body(bytes)
            case .file(let head, let blob): try open(head, blob, isDiscarded: false) ?? findBody(digest)
            }
        }
    }

    /// Those of the digests that no entry in the index has, in order, by one snapshot, and those whose files are not
    /// what their records say.
    /// - Parameters:
    ///   - lengths: content with another length than one of these is missing.
    ///   - walks: as above.
    func missing(_ digests: [Digest], lengths: [Digest: Int64] = [:], walks: Bool = true) throws -> [Digest] {
        let heads = try read { transaction in
            try digests.map { digest in
                try blob(of: digest, transaction)?.head
                    ?? index.embedded(digest, transaction).map {
                        BlobRecord(embedded: digest, length: UInt64($0.count))
                    }
            }
        }
        let strays = try strays(walks ? zip(digests, heads).compactMap { $1 == nil ? $0 : nil } : [])
        return try zip(digests, heads).compactMap { digest, head in
            let stray = strays[digest].map { BlobRecord(embedded: digest, length: UInt64($0.count)) }
            guard let head = head ?? stray, lengths[digest].map({ $0 == Int64(clamping: head.length) }) ?? true else {
                return digest
            }
            return try head.location == .inline || files.hasWhole(head) ? nil : digest
        }
    }

    /// Those of these contents that nothing leads to but a walk.
    private func strays(_ digests: [Digest]) throws -> [Digest: [UInt8]] {
        guard !digests.isEmpty, try state().strayCount > 0 else { return [:] }
        let digests = Set(digests)
        return try Yielding.run(files) { poll in
            try readLong { transaction in
                var found: [Digest: [UInt8]] = [:]
                try index.walkEmbedded(digests, transaction, poll: poll) {
                    found[$1] = Array($2)
                    return found.count < digests.count
                }
                return found
            }
        }
    }

    private enum Content {
        case inline([UInt8])
        case file(head: BlobRecord, blob: UInt64)
    }

    private func content(_ digest: Digest, _ transaction: ReadTransaction) throws -> Content? {
        guard let (head, blob, value) = try blob(of: digest, transaction) else {
            return try index.embedded(digest, transaction).map { .inline(Array($0)) }
        }
        if head.location == .file { return .file(head: head, blob: blob) }
        return try soundBytes(value, head, blob).map { .inline($0) }
    }

    private func blob(
        of digest: Digest, _ transaction: ReadTransaction
    ) throws -> (head: BlobRecord, blob: UInt64, value: UnsafeRawBufferPointer)? {
        guard let row = try digest.withBytes({ try transaction.get(index.digests, $0) }),
            let shared = DigestRecord(row), let value = try transaction.get(index.blobs, shared.blob),
            let head = BlobRecord(value), head.isComplete, head.digest == digest
        else { return nil }
        return (head, shared.blob, value)
    }
}
