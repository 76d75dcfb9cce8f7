import SystemPackage

/// A file of a fixed length, mapped whole for reading and writing, by this process and by others.
final class MappedFile: @unchecked Sendable {
    // SAFETY: the mapping stays where it is until `deinit`; those who share it agree on its bytes.
    let memory: UnsafeMutableRawPointer
    let length: Int
    private let descriptor: FileDescriptor

    /// Opens the file, or makes it with zeros.
    /// - Parameter allocates: whether its blocks are allocated now, so that no write has to. posix_fallocate(3).
    init(_ path: FilePath, length: Int, allocates: Bool) throws {
        descriptor = try .open(path, .readWrite, options: .create, permissions: .ownerReadWrite)
        self.length = length
        if try descriptor.seek(offset: 0, from: .end) < length {
            guard ftruncate(descriptor.rawValue, off_t(length)) == 0 else {
                throw BenchError.system("ftruncate", "\(path)")
            }
            if allocates, posix_fallocate(descriptor.rawValue, 0, off_t(length)) != 0 {
                throw BenchError.system("posix_fallocate", "\(path)")
            }
        }
        guard let memory = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.rawValue, 0),
            memory != MAP_FAILED
        else { throw BenchError.system("mmap", "\(path)") }
        self.memory = memory
    }

    deinit {
        munmap(memory, length)
        try? descriptor.close()
    }

    /// Returns when the bytes `range` would survive a power loss. msync(2).
    func sync(_ range: Range<Int>) {
        let start = range.lowerBound & ~4095
        msync(memory + start, min(range.upperBound, length) - start, MS_SYNC)
    }
}
