import LMDB

/// Embedded bodies have no row in `digests`. Those that were put by content are found under the key of their digest;
/// the others are *strays*, which only a walk over all entries finds. The store counts them, so that there is no walk
/// where there are none.
extension Index {
    /// The body that an entry under the key of a digest has in its record; nil if there is no such entry, or its bytes
    /// are not those.
    func embedded(_ digest: Digest, _ reading: ReadTransaction) throws -> UnsafeRawBufferPointer? {
        guard let raw = try reading.get(entries, Key(digest).bytes), let body = EntryView(raw)?.embedded,
            Digest.of(body) == digest
        else { return nil }
        return body
    }

    /// Calls `body` with each entry that has one of these contents in its record. Looks at every entry.
    /// - Parameters:
    ///   - poll: called before each; what it throws is passed on.
    ///   - body: gets the index key, the digest and the bytes; false ends the walk.
    func walkEmbedded(
        _ digests: Set<Digest>, _ reading: ReadTransaction, poll: () throws -> Void = {},
        _ body: (UnsafeRawBufferPointer, Digest, UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        let prefixes = Set(digests.map(EntryRecord.Embedded.prefix))
        try reading.withCursor(entries) { cursor in
            var pair = try cursor.first()
            while let (key, value) = pair {
                try poll()
                if let view = EntryView(value), view.isEmbedded, prefixes.contains(view.digestPrefix),
                    let bytes = view.embedded, case let digest = Digest.of(bytes), digests.contains(digest)
                {
                    guard try body(key, digest, bytes) else { return }
                }
                pair = try cursor.next()
            }
        }
    }
}

extension EntryRecord {
    /// True if the body is embedded, and its digest does not lead to this key.
    func isStray(under key: [UInt8]) -> Bool {
        guard let embedded else { return false }
        // Decided by what the seal protects, so that a damaged body does not change it.
        return !key.starts(with: Self.contentKey) || key.count != Self.contentKey.count + 64
            || !key.dropFirst(Self.contentKey.count).starts(with: embedded.prefixDigits)
    }

    /// How the keys of content begin.
    private static let contentKey = Array("sha256:".utf8)
}

extension EntryRecord.Embedded {
    /// What is kept of the digest, as the key of the content has it.
    fileprivate var prefixDigits: [UInt8] { Array(Layout.hex(digestPrefix.byteSwapped, width: 16).utf8) }
}
