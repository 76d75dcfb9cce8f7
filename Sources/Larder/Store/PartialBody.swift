import SystemPackage

/// The stored part of a body in progress, as it was when it was looked up. See ``Store/partialBody(of:)``.
///
/// Its bytes stay readable whatever happens to the entry, and it keeps a descriptor open. No byte of a range ever
/// changes. There is no digest yet: only the writer knows that the bytes are right.
public struct PartialBody: Sendable {
    let store: Store
    /// The key that it was looked up by.
    public let key: Key
    let blob: UInt64
    let head: BlobRecord
    let work: PartialWork?
    let file: BodyFile
    let available: StoredRanges
    /// The length that the body will have; nil if it is not known.
    public let total: ByteCount?
    /// The metadata that its writer stores with it.
    public let metadata: [UInt8]
    /// True if a living writer, of this process or another, has the body.
    public let isBeingWritten: Bool

    init(store: Store, key: Key, _ found: PartialLookups.Found, _ file: BodyFile) {
        self.store = store
        self.key = key
        self.file = file
        blob = found.record.blob
        head = found.head
        work = found.work
        available = found.progress.ranges
        total = found.progress.total.map { ByteCount($0) }
        metadata = found.work?.metadata ?? found.record.metadata
        isBeingWritten = found.isBeingWritten
    }

    /// The stored ranges, in order; none of them overlap or touch.
    public var ranges: [Range<Int64>] { available.list }

    /// The bytes of a range, cut to the contiguous part stored from its beginning; empty if its first byte is missing.
    /// - Parameter range: offsets from the start of the body.
    /// - Throws: `io`; `corruption` if the file is shorter than it should be.
    public func bytes(in range: Range<Int64>) throws -> [UInt8] {
        do {
            return try Self.bytes(in: range, of: file, available, path: path)
        } catch let error as LarderError where error.code == .corruption {
            // The file of a body that is being written is its writer's.
            if !isBeingWritten { store.engine.damage.quarantineLater(blob, head, error.message) }
            throw error
        }
    }

    /// The bytes of a range, read on a thread that may wait for the disk. Result and errors are those of the
    /// synchronous form.
    public func bytes(in range: Range<Int64>) async throws -> [UInt8] {
        try Task.checkCancellation()
        let body = self
        return try await IOPool.shared.run { try body.bytes(in: range) }
    }

    /// Runs `body` with a descriptor from which bytes can be read, and the contiguous part of a range stored from its
    /// beginning: for sendfile(2) and similar calls. The rest of the file must not be read: it may have holes. Where
    /// the store is encrypted, it is a memory file with the part.
    ///
    /// The descriptor must not be written to, moved or closed; read at offsets (pread(2)).
    /// - Parameters:
    ///   - range: offsets from the start of the body.
    ///   - body: gets the descriptor, which is valid inside it only, and the offsets of the bytes.
    /// - Returns: the result of `body`.
    /// - Throws: the errors of `body`; in an encrypted store those of `bytes(in:)`, too.
    public func withFileRange<R>(
        in range: Range<Int64>, _ body: (FileDescriptor, Range<Int64>) throws -> R
    ) throws -> R {
        if isEncrypted {
            let range = Self.part(of: range, available)
            return try Body(try bytes(in: range)).withFileRange { try body($0, $1) }
        }
        return try withExtendedLifetime(file) {
            try body(FileDescriptor(rawValue: file.descriptor.raw), Self.part(of: range, available))
        }
    }

    /// Runs `body` with the descriptor of its file; nil where that is encrypted.
    package func withFileDescriptor<R>(_ body: (FileDescriptor) throws -> R) rethrows -> R? {
        if isEncrypted { return nil }
        return try withExtendedLifetime(file) { try body(FileDescriptor(rawValue: file.descriptor.raw)) }
    }

    /// True if its file cannot be read without the store's key.
    package var isEncrypted: Bool { file.seal != nil }

    var token: StagingToken { head.token }

    private var path: FilePath { store.engine.files.staging.path(of: token.name) }

    static func part(of range: Range<Int64>, _ available: StoredRanges) -> Range<Int64> {
        let start = max(0, range.lowerBound)
        return start..<max(start, min(range.upperBound, available.end(from: start)))
    }

    /// Reads from a file to which a writer of another process may write: in an encrypted one a chunk may change between
    /// its head and its end.
    private static func read(
        _ file: BodyFile, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64,
        _ path: @autoclosure () -> FilePath?
    ) throws -> Int {
        for _ in 0..<3 {
            do { return try file.read(into: buffer, at: offset, path: path()) } catch is SealDamage { usleep(1000) }
        }
        return try file.readSound(into: buffer, at: offset, path: path())
    }

    static func bytes(
        in range: Range<Int64>, of file: BodyFile, _ available: StoredRanges, path: @autoclosure () -> FilePath?
    ) throws -> [UInt8] {
        let range = part(of: range, available)
        if range.isEmpty { return [] }
        return try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            let target = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count])
            count = try read(file, into: target, at: range.lowerBound, path())
            if count < range.count {
                throw LarderError(
                    .corruption, "the file of a body in progress is shorter than its ranges", remedy: .repair,
                    path: path())
            }
        }
    }
}
