import LMDB

/// What displacement passes by.
extension Index {
    /// What a lease protects.
    enum LeaseKind: UInt8 {
        case key = 1
        case tag = 2
        /// A key or a tag in one application version.
        case keyOfVersion = 3
        case tagOfVersion = 4
        /// Content, whichever entries have it.
        case digest = 5
        /// Protects nothing: an instance computes the value of a key.
        case computation = 6

        var ofVersion: LeaseKind { self == .key ? .keyOfVersion : self == .tag ? .tagOfVersion : self }
    }

    /// The value of a lease's row.
    static func lease(until expires: Int64, instance: UInt64) -> [UInt8] {
        withUnsafeBytes(of: expires.littleEndian) { Array($0) }
            + withUnsafeBytes(of: instance.littleEndian) { Array($0) }
    }

    /// The beginning of the rows of the leases of a key or tag.
    /// - Parameter version: only entries of this application version are leased; nil: of every version.
    static func leasePrefix(_ kind: LeaseKind, _ subject: [UInt8], version: UInt16? = nil) -> [UInt8] {
        guard let version else { return [kind.rawValue] + Digest.of(subject).bytes }
        return [kind.ofVersion.rawValue] + Digest.of([UInt8(version & 0xFF), UInt8(version >> 8)] + subject).bytes
    }

    /// True if a lease protects the entry with this key, these tags and this content.
    /// - Parameters:
    ///   - digest: asked for only if there is a lease of some content.
    ///   - released: rows of leases that are over and not deleted yet.
    func isLeased(
        _ key: [UInt8], _ tags: [String], digest: () throws -> Digest?, version: UInt16, at now: Timestamp,
        except released: Set<[UInt8]> = [], _ transaction: ReadTransaction
    ) throws -> Bool {
        func hasLease(_ kind: LeaseKind, _ subject: [UInt8], _ version: UInt16) throws -> Bool {
            try self.hasLease(kind, subject, version, now, released, transaction)
        }
        if try hasLease(.key, key, version) { return true }
        if try tags.contains(where: { try hasLease(.tag, Array($0.utf8), version) }) { return true }
        let hasLeasedContent = try transaction.withCursor(leases) { cursor in
            try cursor.seek([LeaseKind.digest.rawValue])?.0.first == LeaseKind.digest.rawValue
        }
        guard hasLeasedContent, let digest = try digest() else { return false }
        return try hasLease(.digest, digest.bytes, 0)
    }

    private func hasLease(
        _ kind: LeaseKind, _ subject: [UInt8], _ version: UInt16, _ now: Timestamp, _ released: Set<[UInt8]>,
        _ transaction: ReadTransaction
    ) throws -> Bool {
        var isHeld = false
        try visitLeases(kind, subject, version: version, at: now, except: released, transaction) { _ in
            isHeld = true
            return false
        }
        return isHeld
    }

    /// True if a living instance has the claim of a key: it computes the value, or writes the body.
    /// - Parameter own: an instance whose claims do not count. Nil: all count.
    func isClaimed(
        _ subject: [UInt8], version: UInt16?, at now: Timestamp, except own: UInt64?, _ files: StoreFiles,
        _ transaction: ReadTransaction
    ) throws -> Bool {
        let prefix = Self.leasePrefix(.computation, subject, version: version)
        return try transaction.withCursor(leases) { cursor in
            var pair = try cursor.seek(prefix)
            while let (row, value) = pair, row.hasPrefix(prefix) {
                if value.count == 16, value.field(0, as: Int64.self) > now.microseconds,
                    value.field(8, as: UInt64.self) != own, try files.isAlive(value.field(8))
                {
                    return true
                }
                pair = try cursor.next()
            }
            return false
        }
    }

    /// True if a living instance writes the body of an entry, whatever version its store has.
    func isBeingWritten(
        key: [UInt8], _ record: EntryRecord, at now: Timestamp, except own: UInt64? = nil, _ files: StoreFiles,
        _ transaction: ReadTransaction
    ) throws -> Bool {
        let subject = record.wholeKey(key)
        for version in record.version == 0 ? [nil] : [nil, record.version]
        where try isClaimed(subject, version: version, at: now, except: own, files, transaction) { return true }
        return false
    }

    /// True if one of the tags is pinned.
    func hasPinnedTag(_ tags: [String], _ transaction: ReadTransaction) throws -> Bool {
        try tags.contains { try transaction.get(pinnedTags, Array($0.utf8)) != nil }
    }
}

extension StoreFiles {
    /// True if an instance is alive, as far as this process can see.
    func isAlive(_ instance: UInt64) throws(LarderError) -> Bool {
        if try InstanceLock.isAlive(instance, staging: staging) { return true }
        // A cleaner of temporary files may have removed the mark of one that lives. One that closes, or is swept, loses
        // its slot in the ledger before its mark.
        guard try FileSystem.status(Layout.instanceLock(instance), in: staging) == nil else { return false }
        return try Ledger.hasSlot(instance, index)
    }
}
