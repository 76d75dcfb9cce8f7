import SystemPackage

/// The directory of a zip archive, read apart from libzip.
///
/// libzip can check an archive itself (`ZIP_CHECKCONS`), but then it refuses what zip(1) writes into a pipe, and what
/// bsdtar(1) writes. This reads what matters for safety: that there is one directory, that each of its entries leads to
/// data with the same name, and that no two entries share data. What libzip has read is compared with it, so that no
/// other program finds other members in the archive.
///
/// APPNOTE.TXT 4.3.7 (local file header), 4.3.12 (central directory), 4.3.14 to 4.3.16 (end records), 4.5.3 (Zip64).
struct ArchiveDirectory {
    /// The entry of a member.
    struct Entry {
        var name: [UInt8] = []
        var flags: UInt16 = 0
        var method: UInt16 = 0
        var crc: UInt32 = 0
        var packedLength: UInt64 = 0
        var length: UInt64 = 0
        /// Where its local header is.
        var offset: UInt64 = 0
        /// The version of WinZip's encryption, AE-1 or AE-2. Nil for any other member.
        var aesVersion: UInt16?
    }

    /// Why an archive is refused.
    struct Objection: Error {
        let code: PackageError.Code
        let message: String
        var member: [UInt8]?

        init(_ message: String, code: PackageError.Code = .notAnArchive, member: [UInt8]? = nil) {
            (self.code, self.message, self.member) = (code, message, member)
        }
    }

    /// The number of entries.
    let count: UInt64
    private let start: UInt64
    private let end: UInt64
    private let file: FileDescriptor

    /// What bsdtar(1) may add to the end: zeros, until the length is a multiple of this.
    private static let padding: Int64 = 10_240

    /// Finds the directory: the record at the end of the file says where it is.
    init(_ file: FileDescriptor, length: Int64) throws {
        self.file = file
        let tailStart = max(0, length - (22 + 65_535 + 20 + Self.padding))
        let tail = Record(try Self.read(file, at: tailStart, count: Int(length - tailStart)))
        var places: [Int] = []
        let zeros = length % Self.padding == 0 ? tail.zerosAtEnd : 0
        for offset in 0..<max(0, tail.count - 21) where tail.has([0x50, 0x4B, 5, 6], at: offset) {
            let end = offset + 22 + Int(tail.two(offset + 20))
            if end == tail.count || end < tail.count && end >= tail.count - zeros { places.append(offset) }
        }
        guard let place = places.last else {
            throw Objection("the end of the archive is missing: it is not a zip archive, or it was cut off")
        }
        if places.count > 1 { throw Objection("it has two directories") }
        var count = UInt64(tail.two(place + 10))
        var size = UInt64(tail.four(place + 12))
        var start = UInt64(tail.four(place + 16))
        var end = UInt64(tailStart) + UInt64(place)
        if tail.two(place + 4) != 0 || tail.two(place + 6) != 0 {
            // 0xFFFF: the numbers are in the record of Zip64.
            guard tail.two(place + 4) == 0xFFFF || tail.two(place + 6) == 0xFFFF else {
                throw Objection("it is one of several parts of an archive", code: .unsupported)
            }
        }
        if place >= 20, tail.has([0x50, 0x4B, 6, 7], at: place - 20) {
            end = tail.eight(place - 12)
            guard end <= UInt64(length), UInt64(length) - end >= 56 else {
                throw Objection("the end of the archive leads to a place that is not there")
            }
            let long = Record(try Self.read(file, at: Int64(end), count: 56))
            guard long.has([0x50, 0x4B, 6, 6], at: 0) else {
                throw Objection("the end of the archive leads to a place that is not there")
            }
            let short = (count, size, start)
            (count, size, start) = (long.eight(32), long.eight(40), long.eight(48))
            guard [count, 0xFFFF].contains(short.0), [size, 0xFFFF_FFFF].contains(short.1),
                [start, 0xFFFF_FFFF].contains(short.2)
            else { throw Objection("the two records at its end differ") }
        }
        guard start <= end, end - start >= size, count <= size / 46 else {
            throw Objection("the end of the archive leads to a place that is not there")
        }
        (self.count, self.start, self.end) = (count, start, start + size)
    }

    /// Runs `body` on each entry, in order. Each one is compared with its local header.
    func forEach(_ body: (UInt64, Entry) throws -> Void) throws {
        var reader = Window(file, start..<end)
        var ranges: [Range<UInt64>] = []
        ranges.reserveCapacity(Int(count))
        var isAscending = true
        for index in 0..<count {
            let fixed = Record(try reader.take(46))
            guard fixed.has([0x50, 0x4B, 1, 2], at: 0) else { throw Objection("its directory is damaged") }
            var entry = Entry(
                flags: fixed.two(8), method: fixed.two(10), crc: fixed.four(16),
                packedLength: UInt64(fixed.four(20)), length: UInt64(fixed.four(24)), offset: UInt64(fixed.four(42)))
            entry.name = try reader.take(Int(fixed.two(28)))
            try entry.take(extra: Record(try reader.take(Int(fixed.two(30)))))
            _ = try reader.take(Int(fixed.two(32)))
            let range = try localRange(of: entry)
            if let last = ranges.last, last.upperBound > range.lowerBound { isAscending = false }
            ranges.append(range)
            try body(index, entry)
        }
        if !reader.isAtEnd { throw Objection("its directory has more than the members that it counts") }
        if isAscending { return }
        ranges.sort { $0.lowerBound < $1.lowerBound }
        for (one, next) in zip(ranges, ranges.dropFirst()) where one.upperBound > next.lowerBound {
            throw Objection("two members share data", code: .overlap)
        }
    }

    /// From the local header to the end of the data.
    private func localRange(of entry: Entry) throws -> Range<UInt64> {
        guard entry.offset <= start, start - entry.offset >= 30 else {
            throw Objection("the directory leads to a place that is not there", member: entry.name)
        }
        let count = Int(min(UInt64(30 + entry.name.count), start - entry.offset))
        let bytes = try Self.read(file, at: Int64(entry.offset), count: count)
        let local = Record(bytes)
        guard local.has([0x50, 0x4B, 3, 4], at: 0) else {
            throw Objection("the directory leads to a place that is not there", member: entry.name)
        }
        guard Int(local.two(26)) == entry.name.count, bytes[30...].elementsEqual(entry.name) else {
            throw Objection("the member has another name in front of its data", member: entry.name)
        }
        // What reads an archive from its beginning would find other content.
        guard local.two(8) == entry.method, (local.two(6) ^ entry.flags) & 1 == 0 else {
            throw Objection("the member has another compression or encryption in front of its data", member: entry.name)
        }
        // Bit 3: the checksum and the lengths are behind the data, and what is here has no meaning.
        if local.two(6) & 8 == 0 {
            func agrees(_ short: UInt32, _ value: UInt64) -> Bool { short == 0xFFFF_FFFF || UInt64(short) == value }
            guard local.four(14) == entry.crc, agrees(local.four(18), entry.packedLength),
                agrees(local.four(22), entry.length)
            else { throw Objection("the member has another length in front of its data", member: entry.name) }
        }
        let head = UInt64(30 + entry.name.count) + UInt64(local.two(28))
        let room = start - entry.offset
        guard head <= room, entry.packedLength <= room - head else {
            throw Objection("the member is longer than the archive", member: entry.name)
        }
        return entry.offset..<(entry.offset + head + entry.packedLength)
    }

    private static func read(_ file: FileDescriptor, at offset: Int64, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count])
                let got = try file.read(fromAbsoluteOffset: offset + Int64(filled), into: rest)
                if got == 0 { throw Objection("it was cut off while it was read") }
                filled += got
            }
        }
    }

    /// A part of the file, read from its beginning to its end.
    private struct Window {
        private let file: FileDescriptor
        private var rest: Range<UInt64>
        private var bytes: [UInt8] = []
        private var place = 0

        init(_ file: FileDescriptor, _ range: Range<UInt64>) { (self.file, rest) = (file, range) }

        var isAtEnd: Bool { rest.isEmpty && place == bytes.count }

        mutating func take(_ count: Int) throws -> [UInt8] {
            if bytes.count - place < count {
                let more = min(UInt64(max(count, 1 << 18)), UInt64(rest.count))
                bytes.removeFirst(place)
                place = 0
                bytes += try ArchiveDirectory.read(file, at: Int64(rest.lowerBound), count: Int(more))
                rest = (rest.lowerBound + more)..<rest.upperBound
                guard bytes.count >= count else { throw Objection("its directory is damaged") }
            }
            defer { place += count }
            return Array(bytes[place..<(place + count)])
        }
    }
}

extension ArchiveDirectory.Entry {
    private static let zip64: UInt16 = 1
    private static let aes: UInt16 = 0x9901

    /// Takes the fields that are longer than their place in the entry, and the kind of encryption.
    fileprivate mutating func take(extra: Record) throws {
        var place = 0
        while place + 4 <= extra.count {
            let (kind, size) = (extra.two(place), Int(extra.two(place + 2)))
            place += 4
            guard place + size <= extra.count else { break }
            if kind == Self.aes, size >= 7 { aesVersion = extra.two(place) }
            if kind == Self.zip64 {
                var inner = place
                for field in [\Self.length, \Self.packedLength, \Self.offset]
                where self[keyPath: field] == 0xFFFF_FFFF && inner + 8 <= place + size {
                    self[keyPath: field] = extra.eight(inner)
                    inner += 8
                }
            }
            place += size
        }
    }
}

/// Bytes with numbers in them, the lowest byte first.
private struct Record {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    var zerosAtEnd: Int { bytes.reversed().prefix { $0 == 0 }.count }

    func has(_ mark: [UInt8], at offset: Int) -> Bool {
        offset + mark.count <= bytes.count && bytes[offset..<(offset + mark.count)].elementsEqual(mark)
    }

    func two(_ offset: Int) -> UInt16 { number(offset) }
    func four(_ offset: Int) -> UInt32 { number(offset) }
    func eight(_ offset: Int) -> UInt64 { number(offset) }

    private func number<T: FixedWidthInteger>(_ offset: Int) -> T {
        bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }
}
