import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Bodies in memory above the disk.
@Suite struct MemoryTierTests {
    private static let configuration = Configuration.testing {
        $0.inlineThreshold = .kibibytes(4)
        $0.memoryTier = .mebibytes(4)
    }

    private func hits(_ store: Store) throws -> Int { try store.statistics().memoryTier.hits }

    @Test func theSecondReadOfAFileIsFromMemory() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(100_000), for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body(100_000))
            // Its file is not opened any more.
            let entry = try #require(try store.get("k"))
            #expect(entry.body.withFileDescriptor { _ in true } == nil)
            try #expect(entry.body.bytes() == body(100_000))
            try #expect(hits(store) == 1)
            #expect(entry.digest == Digest.of(body(100_000)))
        }
    }

    @Test func whatIsReplacedRemovedOrExpiredIsNotServed() throws {
        let clock = TestClock()
        try withStore(
            configuration: .testing {
                $0.inlineThreshold = .kibibytes(4)
                $0.memoryTier = .mebibytes(4)
                $0.clock = clock
            }
        ) { store in
            for key in ["a", "b", "c"] {
                try store.put(
                    body(50_000, 1), for: Key(key), PutOptions(lifetime: key == "c" ? .duration(.seconds(5)) : .never))
            }
            try store.flush()
            for key in ["a", "b", "c"] { _ = try store.get(Key(key))?.body.bytes() }
            try store.put(body(50_000, 2), for: "a")
            try #expect(store.bytes("a") == body(50_000, 2))
            try store.flush()
            try #expect(store.bytes("a") == body(50_000, 2))
            try store.remove("b")
            clock.advance(by: .seconds(6))
            try #expect(store.get("b") == nil && store.get("c") == nil)
            try store.clear()
            try #expect(store.get("a") == nil)
        }
    }

    @Test func itKeepsItsLimits() throws {
        try withStore(
            configuration: .testing {
                $0.inlineThreshold = .kibibytes(4)
                $0.memoryTier = .mebibytes(1)
                $0.memoryTierCount = 3
            }
        ) { store in
            for number in 0..<20 {
                try store.put(body(20_000, number), for: Key("\(number)"))
                try store.flush()
                _ = try store.get(Key("\(number)"))?.body.bytes()
                let tier = try store.statistics().memoryTier
                #expect(tier.count <= 3 && tier.bytes <= .mebibytes(1))
            }
            // Over a quarter of it.
            try store.put(body(300_000), for: "long")
            try store.flush()
            for _ in 0..<3 { _ = try store.get("long")?.body.bytes() }
            try #expect(store.get("long")?.body.withFileDescriptor { _ in true } == true)
        }
    }
    /// Eight processes overwrite and remove what the others read.
    @Test func noProcessSeesAnOldBody() throws {
        try withDirectory { directory in
            let path = directory.appending("store").string
            _ = FileManager.default.createFile(
                atPath: path + "-acknowledged", contents: Data(repeating: 0, count: 16 * 8))
            let workers = try (0..<8).map { try Worker(store: path, mode: "coherent", seed: UInt64($0), count: 2000) }
            // It prints whether its tier had hits when it has seen nothing wrong.
            for worker in workers { #expect(worker.finish() == ["READY", "HITS", "OK"]) }
            try finish(try Store(at: FilePath(path), .testing()))
        }
    }

    @Test func aDamagedFileIsNotHeld() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(50_000), for: "k")
            try store.flush()
            let file = store.path.appending("blobs/" + Layout.blob(Digest.of(body(50_000))))
            try TestFiles.flipByte(of: file, at: 100)
            try #expect(store.get("k")?.body.bytes() != body(50_000))
            try #expect(store.statistics().memoryTier.count == 0)
            _ = try store.check(repair: true)
            try store.put(body(50_000), for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body(50_000))
        }
    }
}
