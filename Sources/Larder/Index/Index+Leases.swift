import LMDB

/// The leases of an entry.
extension Index {
    /// The rows of the leases that are in effect on a subject: of every version, and of the entry's own.
    /// - Parameters:
    ///   - version: of the entry.
    ///   - released: rows of leases that are over and not deleted yet.
    ///   - body: gets the value of each row; false stops.
    func visitLeases(
        _ kind: LeaseKind, _ subject: [UInt8], version: UInt16, at now: Timestamp, except released: Set<[UInt8]>,
        _ transaction: ReadTransaction, _ body: (UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        for version in version == 0 ? [nil] : [nil, version] {
            let prefix = Self.leasePrefix(kind, subject, version: version)
            let goesOn = try transaction.withCursor(leases) { cursor in
                var pair = try cursor.seek(prefix)
                while let (row, value) = pair, row.hasPrefix(prefix) {
                    if value.count == 16, value.field(0, as: Int64.self) > now.microseconds,
                        released.isEmpty || !released.contains(Array(row))
                    {
                        guard try body(value) else { return false }
                    }
                    pair = try cursor.next()
                }
                return true
            }
            if !goesOn { return }
        }
    }

    /// The leases that are in effect on the entry with this key, these tags and this content, and the instance that
    /// holds each; 0 for none.
    func activeLeases(
        _ key: [UInt8], _ tags: [String], _ digest: Digest, version: UInt16, at now: Timestamp,
        except released: Set<[UInt8]>, _ transaction: ReadTransaction
    ) throws -> [(subject: ActiveLease.Subject, expires: Timestamp, instance: UInt64)] {
        if try transaction.statistics(leases).entries == 0 { return [] }
        var found: [(subject: ActiveLease.Subject, expires: Timestamp, instance: UInt64)] = []
        func visit(_ kind: LeaseKind, _ bytes: [UInt8], _ version: UInt16, _ subject: ActiveLease.Subject) throws {
            try visitLeases(kind, bytes, version: version, at: now, except: released, transaction) { value in
                found.append((subject, Timestamp(microseconds: value.field(0)), value.field(8)))
                return true
            }
        }
        try visit(.key, key, version, .key)
        for tag in tags { try visit(.tag, Array(tag.utf8), version, .tag(tag)) }
        try visit(.digest, digest.bytes, 0, .content)
        return found
    }
}
