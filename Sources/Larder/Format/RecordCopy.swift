/// The bytes of an `EntryRecord`, copied out of the index, to be decoded when needed. Without an embedded body.
///
/// What comes before the metadata is held in place where the key is short and there are no tags: copying a record then
/// allocates nothing but its metadata.
struct RecordCopy: Sendable {
    private typealias Words = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
    )

    private enum Front {
        case words(Words, count: Int)
        case bytes([UInt8])
    }

    private let front: Front
    /// The caller's bytes, or what they follow: the progress of a body in progress.
    let metadata: [UInt8]
    /// Bytes of the body.
    private let length: UInt64
    /// The stamp of the last access, as the record had it.
    let stamp: UInt64
    /// When the entry expires, as the record had it.
    let expires: Timestamp

    @inline(__always)
    init(_ view: EntryView, _ parts: EntryView.Parts) {
        let end = parts.metadata.lowerBound
        let bytes = view.bytes(0..<end)
        if end <= MemoryLayout<Words>.size {
            var words: Words = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
            front = .words(words, count: end)
        } else {
            front = .bytes(Array(bytes))
        }
        metadata = Array(view.bytes(parts.metadata))
        length = view.length
        stamp = view.stamp
        expires = Timestamp(microseconds: view.expires)
    }

    /// The record, with the length of an embedded body and without its bytes; an empty one if it is damaged.
    var decoded: EntryRecord {
        var head =
            switch front {
            case .words(let words, let count): withUnsafeBytes(of: words) { Array($0[..<count]) }
            case .bytes(let bytes): bytes
            }
        // The length of a body that is not here.
        if head.withUnsafeBytes({ EntryView($0)?.isEmbedded ?? false }) { (head[50], head[51]) = (0, 0) }
        var record = (head + metadata).withUnsafeBytes { EntryRecord($0) } ?? EntryRecord()
        record.length = length
        return record
    }
}
