import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Mapped bytes that the disk does not give up, modelled by a file that was cut after it was mapped: both are SIGBUS
/// when touched.
struct GuardedMemoryTests {
    @Test(arguments: [1, 4096, 40_000, 300_000])
    func bytesInMemoryAreReadWhole(_ count: Int) throws {
        let memory = try GuardedMemory()
        for _ in 0..<2 {
            let found = body(count).withUnsafeBytes { memory.digest(of: $0) }
            #expect(found == Digest.of(body(count)))
        }
    }

    @Test func pagesThatCannotBeReadAreNoSignal() throws {
        try withDirectory { path in
            let file = path.appending("mapped")
            try TestFiles.write(body(65_536), to: file)
            let descriptor = try FileSystem.open(path: file, flags: O_RDWR)
            let address = try FileSystem.map(descriptor, length: 65_536, path: file)
            defer { munmap(address, 65_536) }
            let memory = try GuardedMemory()
            let bytes = UnsafeRawBufferPointer(start: address, count: 65_536)
            #expect(memory.digest(of: bytes) == Digest.of(body(65_536)))
            try TestFiles.truncate(file, to: 8192)
            #expect(memory.digest(of: bytes) == nil)
            #expect(memory.digest(of: UnsafeRawBufferPointer(rebasing: bytes[8192...])) == nil)
            // It is as good as before.
            let head = UnsafeRawBufferPointer(rebasing: bytes[..<8192])
            #expect(memory.digest(of: head) == Digest.of(Array(body(65_536)[..<8192])))
        }
    }
}
