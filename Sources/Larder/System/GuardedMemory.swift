/// Reads memory that the system may be unable to provide.
///
/// A page of a mapped file whose sector cannot be read is SIGBUS for the thread that touches it. write(2) touches it
/// for the caller and answers EFAULT. So the bytes go through a pipe: two system calls for 32 KiB.
final class GuardedMemory {
    // SAFETY: one thread uses it at a time; the pipe is empty between calls.
    private let input: OwnedDescriptor
    private let output: OwnedDescriptor
    private let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

    /// pipe(2). Throws `io` if no descriptor is left.
    init() throws(LarderError) {
        var ends: [Int32] = [-1, -1]
        if pipe(&ends) != 0 { throw .system("pipe", errno, path: nil) }
        input = OwnedDescriptor(ends[0])
        output = OwnedDescriptor(ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit { space.deallocate() }

    /// A copy of the bytes; nil if some of them cannot be read.
    func copy(of bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var copy: [UInt8] = []
        return visit(bytes) { copy.append(contentsOf: $0) } ? copy : nil
    }

    /// The digest of the bytes; nil if some of them cannot be read.
    func digest(of bytes: UnsafeRawBufferPointer) -> Digest? {
        var hash = IncrementalDigest()
        return visit(bytes) { hash.update($0) } ? hash.finalize() : nil
    }

    /// False if some of them cannot be read.
    private func visit(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            // A pipe that is empty takes this much without waiting (pipe(7): 64 KiB).
            let count = write(output.raw, rest.baseAddress, min(rest.count, space.count))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            var done = 0
            while done < count {
                let got = read(input.raw, space.baseAddress, count - done)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { return false }
                body(UnsafeRawBufferPointer(rebasing: space[..<got]))
                done += got
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return true
    }
}
