import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// File systems that find out late what a file takes, modelled by blocks allocated beyond the end of a body's file, and
/// by holes.
struct AllocationTests {
    /// As ext4 does with the list of a file's extents: the blocks come with the write-back.
    private func grow(_ path: FilePath, by bytes: Int64) throws {
        let file = try FileSystem.open(path: path, flags: O_RDWR)
        let length = try FileSystem.status(file, path: path).size
        _ = try FileSystem.preallocate(raw: file.raw, offset: length, length: bytes, path: path)
    }

    /// A process that ended has left the reserve of the index, and the disk has room again.
    @Test func aReserveThatNothingNeedsIsGivenBack() throws {
        try withStore { store in
            try store.put(body(100, 1), for: "a", PutOptions(durability: .durable))
            let data = store.path.appending("index/data.mdb")
            let before = try store.statistics().allocatedBytes.bytes
            try grow(data, by: 512 << 10)
            #expect(try store.statistics().allocatedBytes.bytes >= before + 512 << 10)
            try store.collect()
            #expect(try store.statistics().allocatedBytes.bytes <= before)
            try #expect(store.get("a") != nil)
        }
    }

    @Test func whatAFileTakesIsCorrectedByTheCheckpointThatSyncsIt() throws {
        try withStore { store in
            let bytes = body(50_000)
            try store.put(bytes, for: "k")
            try store.flush()
            let before = try store.statistics().allocatedBytes.bytes
            try grow(store.blobPath(Digest.of(bytes)), by: 8192)
            // Not yet known, and no violation.
            try #expect(store.check().violations.map(\.description) == [])
            try #expect(store.statistics().allocatedBytes.bytes == before)
            try store.checkpoint()
            try #expect(store.statistics().allocatedBytes.bytes == recount(store.path))
            // Later changes come from outside.
            try grow(store.blobPath(Digest.of(bytes)), by: 65_536)
            let report = try store.check(repair: true)
            #expect(report.violations.contains { $0.invariant == .I8 })
            #expect(report.isRepaired)
            try #expect(store.statistics().allocatedBytes.bytes == recount(store.path))
        }
    }

    /// As a file system that compresses, or tells late: never less than the length until the checkpoint.
    @Test func aFileIsChargedWithItsLengthUntilItIsSynced() throws {
        try withDirectory { directory in
            let sparse = directory.appending("sparse")
            try TestFiles.write(body(4096), to: sparse)
            try TestFiles.truncate(sparse, to: 1 << 20)
            let store = try Store(at: directory.appending("store"), .testing())
            let before = try store.statistics().allocatedBytes.bytes
            try store.adopt(sparse, for: "k", method: .link)
            try #expect(store.statistics().allocatedBytes.bytes - before >= 1 << 20)
            try #expect(store.check().violations.map(\.description) == [])
            try store.checkpoint()
            try #expect(store.statistics().allocatedBytes.bytes == recount(store.path))
            try finish(store)
        }
    }
}
