import SystemPackage

extension UnsafeRawBufferPointer {
    /// Whether both hold the same bytes.
    @inline(__always)
    func isSame(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let own = baseAddress, let theirs = other.baseAddress else { return true }
        return memcmp(own, theirs, count) == 0
    }
}

/// Records one behind the other in segments, which are used again, the oldest first.
///
/// A place is a number of bytes that only grows; its segment is the place modulo the length of the log. A record
/// carries its place and a seal over all of it, so that a lookup knows what is torn, or was there before.
struct SegmentLog {
    struct Record {
        /// Place, seal, lengths of key and body, times, digest.
        static let headBytes = 72
        let memory: UnsafeRawPointer
        var keyCount: Int { Int(memory.load(fromByteOffset: 16, as: UInt32.self)) }
        var bodyCount: Int { Int(memory.load(fromByteOffset: 20, as: UInt32.self)) }
        var key: UnsafeRawBufferPointer { .init(start: memory + Self.headBytes, count: keyCount) }
        var body: UnsafeRawBufferPointer { .init(start: memory + Self.headBytes + keyCount, count: bodyCount) }
        var digest: UnsafeRawBufferPointer { .init(start: memory + 40, count: 32) }
        var size: Int { Self.size(keyCount, bodyCount) }
        /// All behind the seal.
        var sealed: UnsafeRawBufferPointer {
            .init(start: memory + 16, count: Self.headBytes - 16 + keyCount + bodyCount)
        }
        static func size(_ key: Int, _ body: Int) -> Int { (headBytes + key + body + 7) & ~7 }
    }

    private let file: MappedFile
    private static let headerBytes = 4096
    let segmentBytes: Int
    let segments: Int

    init(_ path: FilePath, bytes: Int, allocates: Bool) throws {
        segmentBytes = max(1 << 20, min(16 << 20, bytes / 32 & ~4095))
        segments = max(4, (bytes - Self.headerBytes) / segmentBytes)
        file = try MappedFile(path, length: Self.headerBytes + segments * segmentBytes, allocates: allocates)
        if head.pointee == 0 { (head.pointee, tail.pointee, checkpoint.pointee) = (64, 64, 64) }
    }

    private func word(_ index: Int) -> UnsafeMutablePointer<UInt64> {
        (file.memory + index * 64).assumingMemoryBound(to: UInt64.self)
    }
    /// Where the next record goes.
    var head: UnsafeMutablePointer<UInt64> { word(0) }
    /// The oldest place that holds a record.
    var tail: UnsafeMutablePointer<UInt64> { word(1) }
    /// Up to here the tables are on the disk.
    var checkpoint: UnsafeMutablePointer<UInt64> { word(2) }

    private func segment(_ place: UInt64) -> UInt64 { place / UInt64(segmentBytes) }

    @inline(__always)
    private func memory(at place: UInt64) -> UnsafeMutableRawPointer {
        let offset = Int(place % UInt64(segments * segmentBytes))
        return file.memory + Self.headerBytes + offset
    }

    /// The record at a place, if there is one; its seal is not looked at.
    @inline(__always)
    func record(at place: UInt64) -> Record? {
        guard place >= tail.pointee, place &+ UInt64(Record.headBytes) <= head.pointee else { return nil }
        let memory = memory(at: place)
        guard memory.load(as: UInt64.self) == place else { return nil }
        let record = Record(memory: memory)
        let room = segmentBytes - Int(place % UInt64(segmentBytes))
        return record.keyCount <= 65_536 && record.size <= room ? record : nil
    }

    /// Whether all of a record is as it was written.
    @inline(__always)
    func isIntact(_ record: Record) -> Bool {
        record.memory.load(fromByteOffset: 8, as: UInt64.self) == SlotHash.of(record.sealed)
    }

    /// Makes room for a record, for which the oldest segment may go. `displace` gets its records.
    func place(for size: Int, _ displace: (Record, UInt64) -> Void) throws -> UInt64 {
        guard size <= segmentBytes / 2 else { throw BenchError("\(size) bytes are more than half a segment") }
        var place = head.pointee
        if segment(place) != segment(place + UInt64(size) - 1) || place % UInt64(segmentBytes) == 0 {
            place = (place + UInt64(segmentBytes) - 1) / UInt64(segmentBytes) * UInt64(segmentBytes)
            // Two segments apart, so that what a reader looks at is not written right behind its tail.
            while segment(place) + 1 >= segment(tail.pointee) + UInt64(segments) { displaceOldest(displace) }
        }
        return place
    }

    private func displaceOldest(_ displace: (Record, UInt64) -> Void) {
        var place = tail.pointee
        let end = (segment(place) + 1) * UInt64(segmentBytes)
        while place < end, let record = record(at: place) {
            displace(record, place)
            place += UInt64(record.size)
        }
        tail.pointee = end
    }

    /// Writes a record. It is there when `head` is behind it.
    func append(
        at place: UInt64, key: UnsafeRawBufferPointer, digest: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
    ) {
        let memory = memory(at: place)
        memory.storeBytes(of: place, as: UInt64.self)
        memory.storeBytes(of: UInt32(key.count), toByteOffset: 16, as: UInt32.self)
        memory.storeBytes(of: UInt32(body.count), toByteOffset: 20, as: UInt32.self)
        memory.storeBytes(of: Ticks.now(), toByteOffset: 24, as: UInt64.self)
        memory.storeBytes(of: UInt64.max, toByteOffset: 32, as: UInt64.self)
        if let start = digest.baseAddress { (memory + 40).copyMemory(from: start, byteCount: digest.count) }
        if let start = key.baseAddress { (memory + Record.headBytes).copyMemory(from: start, byteCount: key.count) }
        if let start = body.baseAddress {
            (memory + Record.headBytes + key.count).copyMemory(from: start, byteCount: body.count)
        }
        let record = Record(memory: memory)
        memory.storeBytes(of: SlotHash.of(record.sealed), toByteOffset: 8, as: UInt64.self)
        head.pointee = place + UInt64(record.size)
    }

    /// Writes the bytes of places to the disk.
    func sync(_ places: Range<UInt64>) {
        var place = places.lowerBound
        while place < places.upperBound {
            let end = min((segment(place) + 1) * UInt64(segmentBytes), places.upperBound)
            let start = Self.headerBytes + Int(place % UInt64(segments * segmentBytes))
            file.sync(start..<start + Int(end - place))
            place = end
        }
        file.sync(0..<Self.headerBytes)
    }

    /// Calls `body` with every record from a place on: what an open after a crash looks at.
    func forEach(from place: UInt64, _ body: (Record, UInt64) -> Void) {
        var place = max(place, tail.pointee)
        while place < head.pointee {
            if let record = record(at: place) {
                body(record, place)
                place += UInt64(record.size)
            } else {
                place = (segment(place) + 1) * UInt64(segmentBytes)
            }
        }
    }
}
