import CLarder
import SystemPackage

extension Body {
    /// Runs `body` with a descriptor from which the bytes can be read, and their range in the file: for sendfile(2),
    /// splice(2), or a child process. Works for every body.
    ///
    /// A body in a file is the whole file. A body in memory is copied to a memory file that can no longer be changed
    /// (memfd_create(2) with its seals; on Darwin an unlinked temporary file), which exists only during the call.
    ///
    /// The descriptor must not be written to, moved or closed; read at offsets (pread(2)), as its position may be
    /// shared with others.
    /// - Parameter body: gets the descriptor, which is valid inside it only, and the offsets of the bytes.
    /// - Returns: the result of `body`.
    /// - Throws: `io` if no memory file can be made, and the errors of `body`.
    public func withFileRange<R>(_ body: (FileDescriptor, Range<Int64>) throws -> R) throws -> R {
        switch storage {
        case .file(let descriptor, _):
            return try withExtendedLifetime(descriptor) {
                try body(FileDescriptor(rawValue: descriptor.raw), 0..<length.bytes)
            }
        case .compressed, .sealed:
            return try Body(try bytes()).withFileRange(body)
        case .memory(let bytes):
            let raw = bytes.withUnsafeBytes { clarder_memory_file($0.baseAddress, $0.count) }
            if raw < 0 { throw LarderError.system("memfd_create", errno, path: nil) }
            let descriptor = OwnedDescriptor(raw)
            return try withExtendedLifetime(descriptor) {
                try body(FileDescriptor(rawValue: descriptor.raw), 0..<length.bytes)
            }
        }
    }

    /// Runs `body` with all bytes. A file is mapped into memory instead of read, so parts that are not touched cost
    /// nothing.
    ///
    /// A page that the disk cannot deliver ends the process with SIGBUS, as mmap(2) says; `withBytes(_:)` throws `io`
    /// instead.
    /// - Parameter body: gets all bytes; the span must not leave it.
    /// - Returns: the result of `body`.
    /// - Throws: `corruption` if the file is shorter than it should be, `io`, and the errors of `body`.
    public func withMappedBytes<R>(_ body: (RawSpan) throws -> R) throws -> R {
        guard case .file(let descriptor, let place) = storage, length.bytes > 0 else { return try withBytes(body) }
        // Pages behind the end of a file cannot be touched.
        guard try FileSystem.status(descriptor, path: place.path).size >= length.bytes else {
            throw isShort(place.path, nil)
        }
        let count = Int(length.bytes)
        guard let start = mmap(nil, count, PROT_READ, MAP_SHARED, descriptor.raw, 0), start != MAP_FAILED else {
            throw LarderError.system("mmap", errno, path: place.path)
        }
        defer { munmap(start, count) }
        return try body(UnsafeRawBufferPointer(start: start, count: count).bytes)
    }
}
