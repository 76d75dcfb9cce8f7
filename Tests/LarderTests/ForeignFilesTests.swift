import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Files of someone else in the directory of a store: `lost+found`, what editors and synchronising programs leave.
struct ForeignFilesTests {
    private static let names = [
        "lost+found/#12", "stray", ".FORMAT.swp", "index/data.mdb~", "blobs/readme", "blobs/ab/copy (1)",
        "blobs/0x/file", "staging/.nfs000000000000001", "trash/notes", "quarantine/.keep", "index/other/file",
    ]

    private func litter(_ path: FilePath) throws {
        for name in Self.names {
            let file = path.appending(name)
            try FileManager.default.createDirectory(
                atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
            try TestFiles.write([UInt8](repeating: 1, count: 20_000), to: file)
        }
    }

    private func expectLitter(_ path: FilePath) throws {
        for name in Self.names { try #expect(TestFiles.read(path.appending(name)).count == 20_000, "\(name)") }
    }

    @Test func theyAreNamedAndLeftAlone() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put(body(100_000), for: "k")
            let size = try first.statistics().allocatedBytes
            try first.close()
            try litter(path)
            let store = try Store(at: path, .testing())
            // Each of them takes as much.
            try #expect(store.statistics().allocatedBytes.bytes < size.bytes + 20_000)
            for isRepair in [false, true, false] {
                let report = try store.check(repair: isRepair)
                #expect(report.isClean, "\(report.violations)")
                #expect(
                    report.foreignFiles == [
                        ".FORMAT.swp", "blobs/0x", "blobs/ab/copy (1)", "blobs/readme", "index/data.mdb~",
                        "index/other", "lost+found", "quarantine/.keep", "staging/.nfs000000000000001", "stray",
                        "trash/notes",
                    ])
            }
            let collected = try store.collect(compact: true)
            #expect(collected.orphanBlobs == 0 && collected.staleFiles == 0)
            try expectLitter(path)
            try #expect(store.bytes("k") == body(100_000))
            try store.close()
            // An index that cannot be read at all: what nothing names any more goes, and only that.
            try TestFiles.write([UInt8](repeating: 7, count: 100_000), to: path.appending("index/data.mdb"))
            let rebuilt = try Store.rebuildIndex(at: path, .testing())
            #expect(rebuilt.isEmptied && rebuilt.removedFiles == 1 && rebuilt.check.isClean)
            try expectLitter(path)
        }
    }

    @Test func aDamagedFormatIsRepairedBesideThem() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put([1], for: "k")
            try first.close()
            try litter(path)
            try TestFiles.write([], to: path.appending("FORMAT"))
            try #expect(code { _ = try Store(at: path, .testing()) } == .formatMismatch)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.hasRestoredFormat && report.keptEntries == 1)
            try expectLitter(path)
        }
    }

    /// The root of a volume that was just made is not empty.
    @Test func aStoreIsMadeBesideLostAndFound() throws {
        try withDirectory { path in
            try FileManager.default.createDirectory(
                atPath: path.appending("lost+found").string, withIntermediateDirectories: false)
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try finish(store)
            #expect(TestFiles.names(in: path).contains("lost+found"))
        }
    }

    /// A name of the store's does not make a directory or a FIFO one of its files.
    @Test func otherThingsUnderOwnNames() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put(body(100_000), for: "k")
            try first.close()
            let digest = String(repeating: "ab", count: 32)
            let things = [
                "blobs/ab/\(digest)", "staging/0123456789abcdee.lock",
                "trash/\(StagingToken(instance: 7, sequence: 1).name)-\(digest)",
            ]
            for thing in things {
                try FileManager.default.createDirectory(
                    atPath: path.appending(thing).string, withIntermediateDirectories: false)
            }
            let pipe = "staging/0123456789abcdef.lock"
            try #require(mkfifo(path.appending(pipe).string, 0o600) == 0)
            let store = try Store(at: path, .testing())
            for isRepair in [false, true] {
                let report = try store.check(repair: isRepair)
                #expect(report.isClean, "\(report.violations)")
                #expect(Set(report.foreignFiles) == Set(things + [pipe]))
            }
            #expect(try store.collect().staleFiles == 0)
            for thing in things + [pipe] { #expect(TestFiles.exists(path.appending(thing)), "\(thing)") }
            try #expect(store.bytes("k") == body(100_000))
            try store.close()
        }
    }

    /// A dry run counts the bodies that only expired entries have.
    @Test func aDryRunCountsWhatExpiredEntriesTake() throws {
        try withStore(configuration: .testing { $0.expiredRetention = .seconds(100_000) }) { store in
            let expired = PutOptions(lifetime: .until(store.now))
            try store.put(body(300_000, 1), for: "gone", expired)
            try store.put(body(300_000, 1), for: "gone too", expired)
            try store.put(body(500_000, 2), for: "shared", expired)
            try store.put(body(500_000, 2), for: "kept")
            try store.flush()
            let dry = try store.collect(dryRun: true)
            #expect(dry.expiredEntries == 3)
            #expect((300_000..<400_000).contains(dry.freedBytes.bytes), "\(dry.freedBytes)")
            let real = try store.collect()
            #expect(real.expiredEntries == 3 && real.freedBytes >= 300_000)
        }
    }

    /// Something else in the place of a shard's directory: its bodies are misses, and the next put makes room for
    /// itself.
    @Test(arguments: ["file", "pipe"]) func inThePlaceOfAShard(_ kind: String) throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            let bytes = body(100_000)
            let digest = try first.put(bytes, for: "k")
            try first.put(body(100_000, 2), for: "other")
            try first.close()
            let shard = path.appending("blobs").appending(String(digest.hexadecimal.prefix(2)))
            TestFiles.remove(shard)
            if kind == "file" {
                try TestFiles.write([UInt8](repeating: 1, count: 20_000), to: shard)
            } else {
                try #require(mkfifo(shard.string, 0o600) == 0)
            }
            let store = try Store(at: path, .testing())
            let before = try store.check()
            #expect(before.foreignFiles == ["blobs/\(shard.lastComponent!.string)"])
            // The file of a body is lost, and with it what it took.
            #expect(Set(before.violations.map(\.invariant)) == [.I1, .I8])
            try #expect(store.get("k") == nil)
            try #expect(store.bytes("other") == body(100_000, 2))
            try store.put(bytes, for: "k")
            try store.flush()
            try #expect(store.bytes("k") == bytes)
            let after = try store.check()
            #expect(after.isClean, "\(after.violations)")
            #expect(after.foreignFiles.count == 1 && after.foreignFiles[0].hasPrefix("quarantine/blobs-"))
            #expect(try store.collect().staleFiles == 0)
            try #expect(store.bytes("k") == bytes)
            try store.close()
            #expect(TestFiles.names(in: path.appending("quarantine")).count == 1)
        }
    }

    /// What the open of a collection has swept is reported by it, and by it alone.
    @Test func gcReportsWhatItsOpenSwept() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            let name = StagingToken(instance: 77, sequence: 1).name
            try TestFiles.write([UInt8](repeating: 1, count: 400_000), to: path.appending("staging").appending(name))
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            let dry = try reader.collect(dryRun: true)
            #expect(dry.staleFiles == 1 && dry.freedBytes >= 400_000, "\(dry)")
            try reader.close()
            let store = try Store(at: path, .testing())
            let first = try store.collect()
            #expect(first.staleFiles == 1 && first.freedBytes >= 400_000, "\(first)")
            let second = try store.collect()
            #expect(second.staleFiles == 0 && second.freedBytes < 400_000, "\(second)")
            try finish(store)
        }
    }
}
