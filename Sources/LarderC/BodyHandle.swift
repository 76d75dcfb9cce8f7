import CLarderInterface
import Larder
import Locks
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A body that C holds, and what it was given of it so far.
final class BodyHandle: Handled, @unchecked Sendable {
    // SAFETY: everything is immutable but `given`, which is touched under its lock only; what the pointers in it lead
    // to does not change until `deinit`.
    static let kind: UInt8 = 0x13

    let body: Body
    /// What the body was looked up as; nil if by its digest.
    let entry: Entry?
    let digest: Digest

    /// Memory and a descriptor that stay until the body is released.
    private struct Given {
        var bytes: UnsafeRawBufferPointer?
        var isMapped = false
        var metadata: UnsafeRawBufferPointer?
        var file: (descriptor: CInt, range: Range<Int64>)?
    }

    private let given = EngineMutex(Given())

    init(_ body: Body, _ entry: Entry) {
        self.body = body
        self.entry = entry
        digest = entry.digest
    }

    init(_ body: Body, _ digest: Digest) {
        self.body = body
        entry = nil
        self.digest = digest
    }

    deinit {
        given.withLock { given in
            if let bytes = given.bytes, let start = bytes.baseAddress {
                let start = UnsafeMutableRawPointer(mutating: start)
                if given.isMapped { munmap(start, bytes.count) } else { start.deallocate() }
            }
            given.metadata?.baseAddress.map { UnsafeMutableRawPointer(mutating: $0).deallocate() }
            if let file = given.file { close(file.descriptor) }
        }
    }

    /// All bytes: those of a file mapped, unless it is to stay in memory; others copied at the first call.
    func bytes() throws -> UnsafeRawBufferPointer {
        try given.withLock { given in
            if let bytes = given.bytes { return bytes }
            let mapped = body.staysInMemory ? nil : try body.withFileDescriptor { try map($0.rawValue) }
            let bytes = try mapped ?? body.withBytes { span in span.withUnsafeBytes(copied) }
            given.bytes = bytes
            given.isMapped = mapped != nil
            return bytes
        }
    }

    /// The metadata of the entry, copied at the first call.
    func metadata() -> UnsafeRawBufferPointer {
        given.withLock { given in
            if let metadata = given.metadata { return metadata }
            let metadata = (entry?.metadata ?? []).withUnsafeBytes(copied)
            given.metadata = metadata
            return metadata
        }
    }

    /// A descriptor of the body's own, so that it stays whatever the engine does with its own.
    func file() throws -> (descriptor: CInt, range: Range<Int64>) {
        try given.withLock { given in
            if let file = given.file { return file }
            let file = try body.withFileRange { descriptor, range in
                let copy = fcntl(descriptor.rawValue, F_DUPFD_CLOEXEC, 0)
                if copy < 0 { throw systemError("fcntl", errno) }
                return (descriptor: copy, range: range)
            }
            given.file = file
            return file
        }
    }

    private func map(_ descriptor: CInt) throws -> UnsafeRawBufferPointer {
        let count = Int(body.length.bytes)
        if count == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw systemError("fstat", errno) }
        // Pages behind the end of a file cannot be touched.
        if status.st_size < off_t(count) { throw isShort(Int64(status.st_size), of: count) }
        guard let start = mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0), start != MAP_FAILED else {
            throw systemError("mmap", errno)
        }
        return UnsafeRawBufferPointer(start: start, count: count)
    }
}

private func copied(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    if bytes.isEmpty { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyMemory(from: bytes)
    return UnsafeRawBufferPointer(copy)
}

private func isShort(_ end: Int64, of length: Int) -> LarderError {
    LarderError(.corruption, "a body ends after \(end) of \(length) bytes", remedy: .repair)
}

private func systemError(_ call: String, _ number: CInt) -> LarderError {
    LarderError(.io, "\(call)(2) of a body failed", cause: Errno(rawValue: number))
}
