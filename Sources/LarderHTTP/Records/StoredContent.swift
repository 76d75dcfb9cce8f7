import HTTPCaching
import Larder

/// What is stored of a representation, for tools: the whole body, or the ranges that are there, in their order, from
/// the entry of the response and from those of its parts.
package struct StoredContent: Sendable {
    /// Bytes that are there.
    package let length: Int64
    private let pieces: [(body: Body, range: Range<Int64>)]

    /// - Parameter read: finds the entry of a part; nil where it is gone, which leaves a gap.
    package init(_ entry: Entry, part read: (Key) throws -> Entry?) rethrows {
        var found: [(position: Range<Int64>, body: Body, offset: Int64)] = []
        func add(_ ranges: ByteRanges, _ body: Body) {
            var offset: Int64 = 0
            for range in ranges.ranges {
                found.append((range, body, offset))
                offset += Int64(range.count)
            }
        }
        guard let record = StoredRecord(entry.attributes.metadata), case .partial(let own, _) = record.response.body,
            !record.parts.isEmpty
        else {
            length = entry.body.length.bytes
            pieces = [(entry.body, 0..<length)]
            return
        }
        add(own, entry.body)
        for part in record.parts {
            if let other = try read(part.key(entry.attributes.key)) { add(part.ranges, other.body) }
        }
        var pieces: [(body: Body, range: Range<Int64>)] = []
        var end: Int64 = 0
        // What two of them have is taken once.
        for piece in found.sorted(by: { $0.position.lowerBound < $1.position.lowerBound }) {
            let start = max(piece.position.lowerBound, end)
            guard start < piece.position.upperBound else { continue }
            let shift = piece.offset - piece.position.lowerBound
            pieces.append((piece.body, (start + shift)..<(piece.position.upperBound + shift)))
            end = piece.position.upperBound
        }
        self.pieces = pieces
        length = pieces.reduce(0) { $0 + Int64($1.range.count) }
    }

    /// The bytes in pieces, so that memory stays small.
    package func forEach(_ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        let step: Int64 = 1 << 20
        for (body, range) in pieces {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let bytes = try body.bytes(in: offset..<min(offset + step, range.upperBound))
                try bytes.withUnsafeBytes(write)
                offset += step
            }
        }
    }
}

/// Entries of an HTTP cache that are not responses, and where a URL's response is stored.
package enum StoredKeys {
    /// Whether an entry is a list without a body: of a URL's variants, or of the variations of a path.
    package static func isList(_ entry: Attributes) -> Bool {
        VariantIndex(entry.metadata) != nil || VariationList(entry.metadata) != nil
    }

    /// Whether an entry is a part of the response under another key.
    package static func isPart(_ entry: Attributes) -> Bool {
        entry.metadata == StoredPart.metadata && entry.key.text.contains(" part=")
    }

    /// The key under which a URL's response is stored: its own, or else that of a response that answers several
    /// queries, this one among them (`No-Vary-Search`). `key` itself where there is neither.
    package static func resolved(_ key: Key, in store: Store) throws -> Key {
        guard try store.attributes(of: key) == nil else { return key }
        let scope = SearchScope(uri: String(decoding: key.bytes, as: UTF8.self))
        let list = try store.attributes(of: Key(scope.listKey)).flatMap { VariationList($0.metadata) }
        for variation in list?.variations ?? [] {
            let other = Key(scope.primary(variation))
            if try store.attributes(of: other) != nil { return other }
        }
        return key
    }
}
