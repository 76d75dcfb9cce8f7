/// The bytes of an `EntryRecord`, copied out of the index, to be decoded when needed.
///
/// The fixed part is held in place: most records end there, and copying one then allocates nothing.
struct RecordCopy: Sendable {
    private typealias Words = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
    )

    private let fixed: Words
    /// The key where it is long, tags, metadata.
    private let rest: [UInt8]

    /// - Parameter raw: at least `EntryRecord.fixedLength` bytes.
    @inline(__always)
    init(_ raw: UnsafeRawBufferPointer) {
        fixed = raw.loadUnaligned(as: Words.self)
        rest =
            raw.count == EntryRecord.fixedLength
            ? [] : Array(UnsafeRawBufferPointer(rebasing: raw[EntryRecord.fixedLength...]))
    }

    /// The stamp of the last access, as the record had it.
    var stamp: UInt64 { withUnsafeBytes(of: fixed) { $0.field(32) } }

    /// When the entry expires, as the record had it.
    var expires: Timestamp { withUnsafeBytes(of: fixed) { Timestamp(microseconds: $0.field(56)) } }

    /// The record; an empty one if it is damaged.
    var decoded: EntryRecord {
        let bytes = withUnsafeBytes(of: fixed) { Array($0) } + rest
        return bytes.withUnsafeBytes { EntryRecord($0) } ?? EntryRecord()
    }

    /// The caller's bytes, without decoding the rest; empty if the record is damaged.
    var metadata: [UInt8] {
        withUnsafeBytes(of: fixed) { raw in
            guard EntryRecord.formats.contains(raw[0]) else { return [] }
            let longKey = Int(raw.field(82, as: UInt16.self))
            let start = Int(raw.field(80, as: UInt16.self)) + (longKey == 0 ? 0 : longKey + 1)
            guard rest.count == start + Int(raw.field(84, as: UInt32.self)) else { return [] }
            return start == 0 ? rest : Array(rest[start...])
        }
    }
}
