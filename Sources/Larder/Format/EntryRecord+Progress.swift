extension EntryRecord {
    /// Which bytes of a body in progress are there. In the record it stands between the tags and the metadata, and is
    /// counted as a part of the metadata, so that a version of the engine that does not know it can still decode the
    /// record, and remove the entry.
    struct Progress: Equatable {
        /// The length that the body will have; nil if it is not known.
        var total: Int64?
        var ranges = StoredRanges()

        /// More ranges than this are refused: each progress of the writer rewrites the record.
        static let maximumRanges = 1024
        static let headLength = 16
        static let rangeLength = 16

        var byteCount: Int { Self.headLength + ranges.count * Self.rangeLength }

        /// The length of the body as far as it is known.
        var length: Int64 { total ?? ranges.end }

        init(total: Int64? = nil, ranges: StoredRanges = StoredRanges()) {
            self.total = total
            self.ranges = ranges
        }

        /// Encodes it into exactly `byteCount` bytes.
        func write(to raw: UnsafeMutableRawBufferPointer) {
            raw.setField(0, total.map { UInt64($0) } ?? .max)
            raw.setField(8, UInt32(ranges.count))
            raw.setField(12, UInt32(0))
            for (place, range) in ranges.list.enumerated() {
                raw.setField(Self.headLength + place * Self.rangeLength, UInt64(range.lowerBound))
                raw.setField(Self.headLength + place * Self.rangeLength + 8, UInt64(range.upperBound))
            }
        }

        /// Decodes it from the beginning of `raw`; nil if it is not one: too many ranges, out of order, or beyond the
        /// length of the body or of any body.
        init?(_ raw: UnsafeRawBufferPointer) {
            guard raw.count >= Self.headLength else { return nil }
            let total: UInt64 = raw.field(0)
            let count = Int(raw.field(8, as: UInt32.self))
            guard total == .max || total <= UInt64(Store.maximumLength), raw.field(12, as: UInt32.self) == 0,
                count <= Self.maximumRanges, raw.count >= Self.headLength + count * Self.rangeLength
            else { return nil }
            let limit = min(total, UInt64(Store.maximumLength))
            var list: [Range<Int64>] = []
            for place in 0..<count {
                let start: UInt64 = raw.field(Self.headLength + place * Self.rangeLength)
                let end: UInt64 = raw.field(Self.headLength + place * Self.rangeLength + 8)
                guard start < end, end <= limit else { return nil }
                list.append(Int64(start)..<Int64(end))
            }
            guard let ranges = StoredRanges(list) else { return nil }
            self.ranges = ranges
            self.total = total == .max ? nil : Int64(total)
        }
    }
}
