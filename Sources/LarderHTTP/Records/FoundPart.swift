import HTTPCaching
import Larder

/// Bytes of a response that were found in one entry: which positions are there, and where in the entry.
struct FoundPart: Sendable {
    /// The part as the record lists it.
    let part: StoredPart
    /// What the record lists of it and the entry has.
    let available: ByteRanges
    let bytes: StoredBytes
    /// Whether each byte is at its position; if not, the ranges of the part follow one another.
    private let isPlaced: Bool
    /// When the entry expires, if that is known.
    let expires: Timestamp?
    /// Of the body of the entry, where it is complete: its length and SHA-256.
    private let content: (length: Int64, digest: Digest)?

    /// A part that is complete; nil if the entry is something else.
    init?(_ part: StoredPart, in entry: Entry) {
        let length = entry.body.length.bytes
        switch entry.metadata {
        case let metadata where StoredPart.isPlaced(metadata):
            // Its body was completed, and has not become that of the response yet.
            available = part.ranges.intersection([0..<length])
            isPlaced = true
        case StoredPart.packedMetadata:
            guard length == part.ranges.count else { return nil }
            available = part.ranges
            isPlaced = false
        default: return nil
        }
        self.part = part
        bytes = .complete(entry.body)
        expires = entry.attributes.expires
        content = (length, entry.digest)
    }

    /// A part in progress; nil if the body is something else.
    init?(_ part: StoredPart, in body: PartialBody) {
        guard StoredPart.isPlaced(body.metadata) else { return nil }
        self.part = part
        available = part.ranges.intersection(body.ranges)
        bytes = .inProgress(body)
        isPlaced = true
        expires = nil
        content = nil
    }

    /// The ranges of the response's own entry.
    init(_ ranges: ByteRanges, packedIn body: Body) {
        part = StoredPart(id: 0, ranges: ranges)
        available = ranges
        bytes = .complete(body)
        isPlaced = false
        expires = nil
        content = nil
    }

    /// What is stored of a part of the response under `key`; nil if it is gone. Waits for the disk.
    init?(_ part: StoredPart, of key: Key, in store: Store) throws {
        if let body = try store.partialBody(of: part.key(key)) {
            self.init(part, in: body)
        } else {
            guard let entry = try store.get(part.key(key), includingExpired: true) else { return nil }
            self.init(part, in: entry)
        }
    }

    /// True if more can be written to it.
    var isInProgress: Bool { if case .inProgress = bytes { true } else { false } }

    /// The SHA-256 of its body if that is the whole representation: the record may list less than was written.
    func digest(ofWhole total: Int64) -> Digest? {
        guard let content, content.length == total, isPlaced || part.ranges.contains(0..<total) else { return nil }
        return content.digest
    }

    /// The run of bytes that has a position: where it is in the entry, and the position where it ends; nil if that byte
    /// is not there.
    func run(at position: Int64) -> (offset: Int64, end: Int64)? {
        guard let range = available.ranges.first(where: { $0.contains(position) }) else { return nil }
        if isPlaced { return (position, range.upperBound) }
        return available.storageOffset(of: position).map { ($0, range.upperBound) }
    }

    /// All runs.
    var runs: [(position: Range<Int64>, bytes: StoredBytes, offset: Int64)] {
        var packed: Int64 = 0
        return available.ranges.map { range in
            defer { packed += Int64(range.count) }
            return (range, bytes, isPlaced ? range.lowerBound : packed)
        }
    }
}

extension ByteRanges {
    /// The positions that are also in ascending ranges that do not overlap.
    func intersection(_ others: [Range<Int64>]) -> ByteRanges {
        var result: [Range<Int64>] = []
        var (mine, other) = (0, 0)
        while mine < ranges.count, other < others.count {
            let common = ranges[mine].clamped(to: others[other])
            if !common.isEmpty { result.append(common) }
            if ranges[mine].upperBound < others[other].upperBound { mine += 1 } else { other += 1 }
        }
        return ByteRanges(result)
    }
}
