import LMDB

/// Rows by what they are found with. Nil: there is none, or it cannot be read.
extension Index {
    /// The entry under an index key.
    func entry(_ key: [UInt8], _ reading: ReadTransaction) throws -> EntryRecord? {
        try reading.get(entries, key).flatMap(EntryRecord.init)
    }

    /// True if the record under an index key is whole and that of the key, as far as its seal tells.
    func isIntact(_ key: [UInt8], _ reading: ReadTransaction) throws -> Bool {
        try reading.get(entries, key).flatMap(EntryView.init)?.isIntact(under: key) ?? false
    }

    /// The head of a blob.
    func blob(_ id: UInt64, _ reading: ReadTransaction) throws -> BlobRecord? {
        try reading.get(blobs, id).flatMap(BlobRecord.init)
    }

    /// What is known of the body of an entry, wherever it is.
    func head(of record: EntryRecord, _ reading: ReadTransaction) throws -> BlobRecord? {
        try record.embedded.map(BlobRecord.init(embedded:)) ?? blob(record.blob, reading)
    }

    /// Which blob has these bytes, and how many entries use it.
    func shared(_ digest: Digest, _ reading: ReadTransaction) throws -> DigestRecord? {
        try digest.withBytes { try reading.get(digests, $0) }.flatMap(DigestRecord.init)
    }

    /// The blob that has these bytes.
    func blob(_ digest: Digest, _ reading: ReadTransaction) throws -> NumberedBlob? {
        guard let id = try shared(digest, reading)?.blob, let head = try blob(id, reading) else { return nil }
        return NumberedBlob(id: id, head: head)
    }

    /// The blob whose file may still lie in `staging/` under a token.
    func unpublished(_ token: StagingToken, _ reading: ReadTransaction) throws -> NumberedBlob? {
        guard let value = try reading.get(unpublished, token.indexKey) else { return nil }
        return try unpublished(token, value, reading)
    }

    /// The blob that a row of `unpublished` leads to; nil if it is another's.
    private func unpublished(
        _ token: StagingToken?, _ value: UnsafeRawBufferPointer, _ reading: ReadTransaction
    ) throws -> NumberedBlob? {
        guard let id = value.number, let head = try blob(id, reading), head.token == token else { return nil }
        return NumberedBlob(id: id, head: head)
    }

    /// Calls `body` with the rows of `unpublished` in order, and the blob that each leads to, until it returns false.
    /// - Parameter start: a key, or the beginning of one.
    func walkUnpublished(
        from start: [UInt8] = [], _ reading: ReadTransaction,
        _ body: (_ row: UnsafeRawBufferPointer, NumberedBlob?) throws -> Bool
    ) throws {
        try reading.withCursor(unpublished) { cursor in
            var pair = try cursor.seek(start)
            while let (row, value) = pair {
                guard try body(row, unpublished(StagingToken(indexKey: row), value, reading)) else { return }
                pair = try cursor.next()
            }
        }
    }
}

/// A blob's head, and its number.
struct NumberedBlob {
    let id: UInt64
    let head: BlobRecord
}

extension UnsafeRawBufferPointer {
    /// The number that a row of eight bytes has for a value; nil if it is another row.
    var number: UInt64? { count == 8 ? UInt64(bigEndian: loadUnaligned(as: UInt64.self)) : nil }
}
