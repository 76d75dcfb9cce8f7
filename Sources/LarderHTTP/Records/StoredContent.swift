import HTTPCaching
import Larder

/// The stored content of a representation, for tools: the whole body, or the stored ranges, in their order, from the
/// entry of the response and from the entries of its parts.
package struct StoredContent: Sendable {
    /// Number of stored bytes.
    package let length: Int64
    private let pieces: [(bytes: StoredBytes, range: Range<Int64>)]

    /// Looks up the parts of a response. A missing part leaves a gap. Waits for the disk.
    ///
    /// - Parameters:
    ///   - entry: any entry of a store.
    ///   - store: the store that it was read from.
    /// - Throws: `LarderError` if the store cannot be read.
    package init(_ entry: Entry, in store: Store) throws {
        guard let record = StoredRecord(entry.attributes.metadata), case .partial(let own, _) = record.response.body,
            !record.parts.isEmpty
        else {
            length = entry.body.length.bytes
            pieces = [(.complete(entry.body), 0..<length)]
            return
        }
        var found = [FoundPart(own, packedIn: entry.body)]
        for part in record.parts {
            if let part = try FoundPart(part, of: entry.attributes.key, in: store) { found.append(part) }
        }
        var pieces: [(bytes: StoredBytes, range: Range<Int64>)] = []
        var end: Int64 = 0
        // What two of them have is taken once.
        for run in found.flatMap(\.runs).sorted(by: { $0.position.lowerBound < $1.position.lowerBound }) {
            let start = max(run.position.lowerBound, end)
            guard start < run.position.upperBound else { continue }
            let shift = run.offset - run.position.lowerBound
            pieces.append((run.bytes, (start + shift)..<(run.position.upperBound + shift)))
            end = run.position.upperBound
        }
        self.pieces = pieces
        length = pieces.reduce(0) { $0 + Int64($1.range.count) }
    }

    /// Passes the bytes in pieces, so that little memory is needed.
    package func forEach(_ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        let step: Int64 = 1 << 20
        for (stored, range) in pieces {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let bytes = try stored.bytes(in: offset..<min(offset + step, range.upperBound))
                try bytes.withUnsafeBytes(write)
                offset += step
            }
        }
    }
}

/// Entries of an HTTP cache that are not responses, and the key of a URL's response.
package enum StoredKeys {
    /// True if an entry is a list without a body: of a URL's variants, or of the variations of a path.
    package static func isList(_ entry: Attributes) -> Bool {
        VariantIndex(entry.metadata) != nil || VariationList(entry.metadata) != nil
    }

    /// True if an entry is a part of the response under another key.
    package static func isPart(_ entry: Attributes) -> Bool {
        (StoredPart.isPlaced(entry.metadata) || entry.metadata == StoredPart.packedMetadata)
            && entry.key.text.contains(StoredPart.separator)
    }

    /// The prefix of the keys of a response's parts, which no other key of an HTTP cache has.
    package static func partPrefix(of key: Key) -> Key { Key(bytes: key.bytes + Array(StoredPart.separator.utf8)) }

    /// The key under which a URL's response is stored: its own, or else that of a response that answers several
    /// queries, including this one (`No-Vary-Search`), or of a member of a package. `key` itself if there is none.
    package static func resolved(_ key: Key, in store: Store) throws -> Key {
        guard try store.attributes(of: key) == nil else { return key }
        let scope = SearchScope(uri: String(decoding: key.bytes, as: UTF8.self))
        let list = try store.attributes(of: Key(scope.listKey)).flatMap { VariationList($0.metadata) }
        for variation in list?.variations ?? [] {
            let other = Key(scope.primary(variation))
            if try store.attributes(of: other) != nil { return other }
        }
        for (package, member) in try PackageTable(in: store).members(key.text) {
            if package.isWhole, try store.attributes(of: PackageKeys.owner(package.generation)) == nil { continue }
            if try store.attributes(of: member) != nil { return member }
        }
        return key
    }
}
