import SystemPackage

/// The bytes of an entry as they were when it was looked up: later changes of the entry do not affect them.
///
/// A small body is in memory. A large one is an open file, so keeping a body keeps a descriptor open. One that is
/// stored compressed is decompressed as it is read: reads in order do so once, and a read of what is behind starts
/// over. One that is stored encrypted is decrypted as it is read.
public struct Body: Sendable {
    enum Storage: Sendable {
        case memory([UInt8])
        case file(OwnedDescriptor, BodyPlace)
        case compressed(CompressedBody)
        case sealed(SealedBody)
    }

    let storage: Storage
    /// Number of bytes.
    public let length: ByteCount

    init(_ bytes: [UInt8]) {
        storage = .memory(bytes)
        length = ByteCount(bytes.count)
    }

    init(file: OwnedDescriptor, at place: BodyPlace, length: ByteCount) {
        storage = .file(file, place)
        self.length = length
    }

    init(compressed body: CompressedBody) {
        storage = .compressed(body)
        length = ByteCount(body.length)
    }

    init(sealed body: SealedBody) {
        storage = .sealed(body)
        length = ByteCount(body.length)
    }

    /// True if it is in a file, and decrypted as it is read.
    package var isEncrypted: Bool {
        if case .sealed = storage { true } else { false }
    }

    /// True if it is decrypted as it is read, or decompressed and long: not on a thread that must not wait.
    package var isDecodedLater: Bool {
        switch storage {
        case .memory, .file: false
        case .compressed: length.bytes > 64 << 10
        case .sealed: true
        }
    }

    /// The gzip member (RFC 1952) that is stored for it; nil for a body that is stored as it is, or whose member is not
    /// at hand.
    package var compressedForm: Body? {
        if case .compressed(let body) = storage { body.member } else { nil }
    }

    /// Where its file was; nil for one in memory.
    var path: FilePath? {
        switch storage {
        case .memory: nil
        case .file(_, let place): place.path
        case .compressed(let body): body.member.path
        case .sealed(let body): body.path
        }
    }

    /// SHA-256 of a body that is in memory.
    var digestInMemory: Digest {
        guard case .memory(let bytes) = storage else { preconditionFailure("the body is a file") }
        return Digest.of(bytes)
    }

    /// All bytes: a copy. A body in a file is read, so this may wait for the disk.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func bytes() throws -> [UInt8] {
        switch storage {
        case .memory(let bytes): return bytes
        case .file(_, let place): return place.hold(try bytes(in: 0..<length.bytes))
        case .compressed(let body):
            let bytes: [UInt8] = try bytes(in: 0..<length.bytes)
            return body.place?.hold(bytes) ?? bytes
        case .sealed(let body): return body.place.hold(try bytes(in: 0..<length.bytes))
        }
    }

    /// The bytes of a range: a copy.
    /// - Parameter range: offsets from the start of the body; the part beyond its end is left out.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func bytes(in range: Range<Int64>) throws -> [UInt8] {
        let range = range.clamped(to: 0..<length.bytes)
        switch storage {
        case .memory(let bytes):
            return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .file(let descriptor, let place):
            // A damaged length must not become an allocation.
            if range.count > 1 << 20, try FileSystem.status(descriptor, path: place.path).size < range.upperBound {
                throw isShort(place.path, nil)
            }
            return try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                let target = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count])
                try read(descriptor, place, into: target, at: range.lowerBound)
                count = range.count
            }
        case .compressed(let body): return try Self.bytes(in: range, body.read)
        case .sealed(let body):
            // As above.
            if range.count > 1 << 20 {
                let size = try FileSystem.status(body.file.descriptor, path: body.path).size
                if size < body.file.fileLength(range.upperBound) { throw isShort(body.path, nil) }
            }
            return try Self.bytes(in: range, body.read)
        }
    }

    private static func bytes(
        in range: Range<Int64>, _ read: (UnsafeMutableRawBufferPointer, Int64) throws -> Void
    ) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            let target = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count])
            try read(target, range.lowerBound)
            count = range.count
        }
    }

    /// Copies bytes into memory of the caller. A body in a file is read, so this may wait for the disk. pread(2).
    /// - Parameters:
    ///   - buffer: gets the bytes; it is filled as far as the body goes.
    ///   - offset: of the first of them from the start of the body; 0 or more. Default: 0.
    /// - Returns: how many bytes were copied.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64 = 0) throws -> Int {
        let start = min(max(offset, 0), length.bytes)
        let count = Int(clamping: min(Int64(buffer.count), length.bytes - start))
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        switch storage {
        case .memory(let bytes):
            bytes.withUnsafeBytes {
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(start)..<Int(start) + count]))
            }
        case .file(_, let place) where count == length.bytes && place.holds(length):
            try bytes().withUnsafeBytes { target.copyMemory(from: $0) }
        case .file(let descriptor, let place): try read(descriptor, place, into: target, at: start)
        case .compressed(let body): try body.read(into: target, at: start)
        case .sealed(let body): try body.read(into: target, at: start)
        }
        return count
    }

    private func read(
        _ descriptor: OwnedDescriptor, _ place: BodyPlace, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws {
        let count = try FileSystem.read(descriptor, into: buffer, at: offset, path: place.path)
        if count < buffer.count { throw isShort(place.path, offset + Int64(count)) }
    }

    func isShort(_ path: FilePath, _ end: Int64?) -> LarderError {
        let found =
            end.map { "ends after \($0) of \(length.bytes) bytes" } ?? "is shorter than its \(length.bytes) bytes"
        return LarderError(.corruption, "the body \(path) \(found)", remedy: .repair, path: path)
    }

    /// All bytes: a copy. A body in a file is read on a thread that may wait for the disk.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func bytes() async throws -> [UInt8] {
        try Task.checkCancellation()
        if case .memory(let bytes) = storage { return bytes }
        let body = self
        return try await IOPool.shared.run { try body.bytes() as [UInt8] }
    }

    /// Runs `body` with all bytes, without a copy if they are in memory, and without an allocation for a file of up to
    /// 4 MiB.
    /// - Parameter body: gets all bytes; the span must not leave it.
    /// - Returns: the result of `body`.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be; the errors of `body`.
    public func withBytes<R>(_ body: (RawSpan) throws -> R) throws -> R {
        switch storage {
        case .file(let descriptor, let place) where length.bytes <= BufferPool.largest && !place.holds(length):
            return try BufferPool.shared.withBuffer(Int(length.bytes)) { buffer in
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(length.bytes)])
                try read(descriptor, place, into: target, at: 0)
                return try body(UnsafeRawBufferPointer(target).bytes)
            }
        default:
            let bytes = try bytes()
            return try bytes.withUnsafeBytes { try body($0.bytes) }
        }
    }

    /// The file behind a large body, for sendfile(2), splice(2) or mmap(2); nil for a small one.
    ///
    /// The descriptor must not be written to, moved or closed; the body is the whole file. `withFileRange(_:)` works
    /// for every body.
    /// - Parameter body: gets the descriptor, which is valid inside it only.
    /// - Returns: the result of `body`; nil for a body in memory.
    /// - Throws: the errors of `body`.
    package func withFileDescriptor<R>(_ body: (FileDescriptor) throws -> R) rethrows -> R? {
        guard case .file(let descriptor, _) = storage else { return nil }
        return try body(FileDescriptor(rawValue: descriptor.raw))
    }

    /// The body piece by piece, read on a thread that may wait for the disk. Only one piece is in memory at a time.
    /// - Parameter size: bytes a piece; 1 or more. Default: 256 KiB.
    /// - Returns: pieces in order. Reading one throws as `bytes()`, and `CancellationError` in a cancelled task.
    public func chunks(ofSize size: ByteCount = .kibibytes(256)) -> some AsyncSequence<[UInt8], any Error> & Sendable {
        BodyChunks(body: self, size: max(1, size.bytes))
    }
}

/// The pieces of a body, in order.
private struct BodyChunks: AsyncSequence, Sendable {
    let body: Body
    let size: Int64

    func makeAsyncIterator() -> Iterator { Iterator(body: body, size: size) }

    struct Iterator: AsyncIteratorProtocol {
        let body: Body
        let size: Int64
        var offset: Int64 = 0

        mutating func next() async throws -> [UInt8]? {
            guard offset < body.length.bytes else { return nil }
            let range = offset..<Swift.min(offset + size, body.length.bytes)
            offset = range.upperBound
            return try await body.bytes(in: range)
        }
    }
}

extension Body {
    /// The bytes of a range, read on a thread that may wait for the disk.
    /// - Parameter range: offsets from the start of the body; the part beyond its end is left out.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func bytes(in range: Range<Int64>) async throws -> [UInt8] {
        try Task.checkCancellation()
        let body = self
        let read: @Sendable () throws -> [UInt8] = { try body.bytes(in: range) }
        if case .memory = storage { return try read() }
        return try await IOPool.shared.run(read)
    }
}
