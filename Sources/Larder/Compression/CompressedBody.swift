import Locks

/// A body whose file holds it compressed. Reads in order decompress each part once; a read of what is behind starts
/// over.
final class CompressedBody: Sendable {
    private struct State {
        var reader: GzipReader?
        /// Where the file is read next.
        var offset: Int64 = 0
    }

    private let file: OwnedDescriptor
    let place: BodyPlace
    let length: Int64
    /// Called with what is wrong.
    private let whenDamaged: @Sendable (String) -> Void
    private let state = EngineMutex(State())

    init(
        _ file: OwnedDescriptor, at place: BodyPlace, length: Int64,
        whenDamaged: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.file = file
        self.place = place
        self.length = length
        self.whenDamaged = whenDamaged
    }

    /// Copies bytes of the body into a buffer, which it fills; both are within its length.
    /// - Throws: `io`; `corruption` if the file does not hold the body.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        do {
            try state.withLock { try read(&$0, into: buffer, at: offset) }
        } catch let error as GzipDamage {
            let reason = "its compressed bytes are damaged: \(error)"
            whenDamaged(reason)
            throw LarderError(
                .corruption, "the body \(place.path) cannot be read: \(reason)", remedy: .repair, path: place.path)
        }
    }

    private func read(_ state: inout State, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
        let reader: GzipReader
        if let current = state.reader, current.position <= offset {
            reader = current
        } else {
            reader = try GzipReader()
            state.offset = 0
        }
        // After an error the next read starts over.
        state.reader = nil
        var fileOffset = state.offset
        let file = file
        let source: GzipReader.Source = { try GzipReader.read(file, &fileOffset, into: $0) }
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
        if reader.position == Int(length) {
            // Its checksum is behind the last byte.
            try reader.finish(from: source)
        } else {
            state.offset = fileOffset
            state.reader = reader
        }
    }
}
