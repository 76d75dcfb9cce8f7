import Locks

/// A body that is decompressed as it is read. Reads in order decompress each part once; a read of what is behind starts
/// over.
final class CompressedBody: Sendable {
    /// A reader, and where it reads the member next.
    private struct Place {
        let reader: GzipReader
        var offset: Int64 = 0
    }

    /// The gzip member.
    let member: Body
    /// Where the body may stay when it was read whole.
    let place: BodyPlace?
    let length: Int64
    /// Called with what is wrong.
    private let whenDamaged: @Sendable (String) -> Void
    /// Of several who read in order, each continues where it was.
    private let places = EngineMutex<[Place]>([])
    private static let mostPlaces = 4

    init(
        _ member: Body, heldAt place: BodyPlace? = nil, length: Int64,
        whenDamaged: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.member = member
        self.place = place
        self.length = length
        self.whenDamaged = whenDamaged
    }

    /// Copies bytes of the body into a buffer, which it fills; both are within its length.
    /// - Throws: `io`; `corruption` if the member is not one of the body.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        if buffer.isEmpty { return }
        do {
            var place = try place(before: offset)
            try read(&place, into: buffer, at: offset)
            keep(place)
        } catch let error as GzipDamage {
            let reason = "its compressed bytes are damaged: \(error)"
            whenDamaged(reason)
            let name = member.path.map { " \($0)" } ?? ""
            throw LarderError(
                .corruption, "the body\(name) cannot be read: \(reason)", remedy: .repair, path: member.path)
        }
    }

    /// The nearest place before an offset, or the start.
    private func place(before offset: Int64) throws -> Place {
        let nearest: Place? = places.withLock { places in
            let before = places.indices.filter { places[$0].reader.position <= offset }
            return before.max { places[$0].reader.position < places[$1].reader.position }.map { places.remove(at: $0) }
        }
        return try nearest ?? Place(reader: GzipReader())
    }

    private func keep(_ place: Place) {
        guard place.reader.position < length else { return }
        places.withLock { places in
            if places.count == Self.mostPlaces { places.removeFirst() }
            places.append(place)
        }
    }

    private func read(_ place: inout Place, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        let reader = place.reader
        var fileOffset = place.offset
        defer { place.offset = fileOffset }
        let member = member
        let source: GzipReader.Source = { buffer in
            let count = try member.read(into: buffer, at: fileOffset)
            fileOffset += Int64(count)
            return count
        }
        try withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 16) { space in
            while reader.position < offset {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: space[..<min(space.count, Int(offset) - reader.position)])
                guard try reader.read(into: part, from: source) == part.count else {
                    throw GzipDamage(description: "it is shorter than the body")
                }
            }
        }
        guard try reader.read(into: buffer, from: source) == buffer.count else {
            throw GzipDamage(description: "it is shorter than the body")
        }
        // Its checksum is behind the last byte.
        if reader.position == Int(length) { try reader.finish(from: source) }
    }
}
