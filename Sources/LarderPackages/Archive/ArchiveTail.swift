import SystemPackage

/// Reads the number of members that the end of a zip archive claims, before libzip does: libzip allocates room for all
/// of them when it opens the archive.
///
/// APPNOTE.TXT 4.3.16 (end of central directory record) and 4.3.14, 4.3.15 (the same of Zip64).
enum ArchiveTail {
    private static let recordLength = 22
    private static let longestComment = 65_535

    /// The largest number of members that any end record in the archive's tail claims; nil if there is no such record.
    static func memberCount(_ file: FileDescriptor, length: Int64) throws -> UInt64? {
        let count = Int(min(length, Int64(recordLength + longestComment + 20)))
        guard count >= recordLength else { return nil }
        let start = length - Int64(count)
        let tail = try read(file, at: start, count: count)
        var largest: UInt64?
        // A comment can hold what looks like another record, and libzip takes the one that fits best.
        for offset in 0...(count - recordLength) where tail.starts(with: [0x50, 0x4B, 5, 6], at: offset) {
            var members = UInt64(tail.number(at: offset + 10, as: UInt16.self))
            if offset >= 20, tail.starts(with: [0x50, 0x4B, 6, 7], at: offset - 20) {
                let place = tail.number(at: offset - 12, as: UInt64.self)
                if place <= UInt64(max(0, length - 56)) {
                    let record = try read(file, at: Int64(place), count: 56)
                    if record.starts(with: [0x50, 0x4B, 6, 6], at: 0) {
                        members = max(members, record.number(at: 32, as: UInt64.self))
                    }
                }
            }
            largest = max(largest ?? 0, members)
        }
        return largest
    }

    private static func read(_ file: FileDescriptor, at offset: Int64, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count])
                let got = try file.read(fromAbsoluteOffset: offset + Int64(filled), into: rest)
                if got == 0 { break }
                filled += got
            }
            // A file that was cut off meanwhile: nothing in the rest looks like a record.
            for index in filled..<count { buffer.initializeElement(at: index, to: 0) }
            filled = count
        }
    }
}

extension [UInt8] {
    fileprivate func starts(with mark: [UInt8], at offset: Int) -> Bool {
        offset + mark.count <= count && self[offset..<(offset + mark.count)].elementsEqual(mark)
    }

    fileprivate func number<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T {
        withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }
}
