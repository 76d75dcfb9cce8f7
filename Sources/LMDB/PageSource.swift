#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The bytes of a data file, read without LMDB.
public protocol PageSource {
    /// Length in bytes.
    var length: UInt64 { get }
    /// Copies up to `buffer.count` bytes at `offset`; returns the number copied. Throws `LMDBError` if the system
    /// reports an error.
    func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(LMDBError) -> Int
}

/// An open file, read with pread(2): a file that becomes shorter, or a sector that cannot be read, is an error that can
/// be handled. Through a mapping both would be SIGBUS.
public struct FilePages: PageSource {
    private let descriptor: Int32
    /// Length in bytes when this value was made.
    public let length: UInt64

    /// The file behind `descriptor`, which stays the caller's, with its current length.
    public init(descriptor: Int32) throws(LMDBError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw LMDBError(code: errno, function: "fstat") }
        self.descriptor = descriptor
        length = UInt64(max(0, status.st_size))
    }

    /// Reads as many bytes as there are now, up to `buffer.count`.
    public func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(LMDBError) -> Int {
        guard offset < 1 << 62, let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let count = pread(descriptor, base + done, buffer.count - done, off_t(offset) + off_t(done))
            if count < 0 {
                if errno == EINTR { continue }
                throw LMDBError(code: errno, function: "pread")
            }
            if count == 0 { break }
            done += count
        }
        return done
    }
}

/// Bytes in memory, for tests and fuzzing.
public struct MemoryPages: PageSource {
    private let bytes: [UInt8]

    /// A file of these bytes.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Number of bytes.
    public var length: UInt64 { UInt64(bytes.count) }

    /// Copies the bytes that exist.
    public func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        guard offset < length else { return 0 }
        let count = min(buffer.count, bytes.count - Int(offset))
        bytes.withUnsafeBytes { raw in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[Int(offset)..<(Int(offset) + count)]))
        }
        return count
    }
}
