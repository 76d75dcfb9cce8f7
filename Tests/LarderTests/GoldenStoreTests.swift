import Foundation
import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A store of each on-disk format, as the version that introduced the format wrote it, can be opened and read by every
/// later version.
///
/// `Golden/format-N` was written by `LARDER_WRITE_GOLDEN=1 swift test --filter GoldenStoreTests`; it is never written
/// again. Git keeps no empty directories, so the shards without a body and `staging/`, `trash/`, `quarantine/` are
/// missing in it, which a store has to stand as well. LMDB files are of the byte order and word size that wrote them.
#if _pointerBitWidth(_64) && _endian(little)
    struct GoldenStoreTests {
        private static let moment = Timestamp(seconds: 1_800_000_000)

        private func golden(_ format: Int) -> URL {
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "Golden/format-\(format)")
        }

        private func configuration(_ format: Int = FormatFile.currentVersion) throws -> Configuration {
            var configuration = Configuration.testing()
            configuration.encryption =
                format == FormatFile.Feature.encryption.rawValue ? try Configuration.testKey : nil
            configuration.clock = TestClock(wall: Self.moment)
            configuration.inlineThreshold = .kibibytes(1)
            configuration.embeddingThreshold = 64
            configuration.version = "golden"
            return configuration
        }

        @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_GOLDEN"] != nil))
        func writeGoldenStore() throws {
            let asked = ProcessInfo.processInfo.environment["LARDER_WRITE_GOLDEN"].flatMap { Int($0) } ?? 0
            let format = max(asked, FormatFile.currentVersion)
            let isCompressed = format > FormatFile.currentVersion
            var golden = golden(format)
            if PageFormat.current != .version1 {
                golden = golden.deletingLastPathComponent().appendingPathComponent(golden.lastPathComponent + "-lmdb-1")
            }
            let path = FilePath(golden.path)
            removeTree(path)
            let store = try Store(at: path, configuration(format))
            try store.setBudget(Budget(bytes: .mebibytes(64), entries: 1000, largestEntry: .mebibytes(8)))
            try store.put(
                body(100, 1), for: "http://golden.test/inline", PutOptions(tags: ["a", "b"], metadata: [1, 2, 3]))
            try store.put(body(100, 1), for: "http://golden.test/shared")
            try store.put(body(3000, 2), for: "http://golden.test/file", PutOptions(isPinned: true))
            try store.put(
                body(0), for: "http://golden.test/empty", PutOptions(lifetime: .duration(.seconds(86_400))))
            try store.put(body(10, 3), for: Key(String(repeating: "long/", count: 200)))
            try store.pin(tag: "b")
            _ = try store.get("http://golden.test/inline")
            if isCompressed {
                let compressed = PutOptions(compression: .trial)
                for length in [1_000, 100_000] {
                    try store.put(CompressionTests.text(length), for: Key("text:\(length)"), compressed)
                }
            }
            try store.close()
            for name in ["index/lock.mdb", "index/ledger"] {
                try FileManager.default.removeItem(at: golden.appendingPathComponent(name))
            }
        }

        @Test(arguments: 1...FormatFile.newestVersion)
        func storeOfEachFormatIsRead(format: Int) throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                try FileManager.default.copyItem(at: golden(format), to: URL(fileURLWithPath: path.string))
                // Written with LMDB 0.9: see LibraryVersionTests.
                if PageFormat.current != .version1 { try Store.rebuildIndex(at: path, configuration(format)) }
                let store = try Store(at: path, configuration(format))
                #expect(try store.check().violations.map(\.description) == [])
                #expect(try store.budget() == Budget(bytes: .mebibytes(64), entries: 1000, largestEntry: .mebibytes(8)))
                let inline = try #require(try store.get("http://golden.test/inline"))
                #expect(try inline.body.bytes() == body(100, 1))
                #expect(inline.metadata == [1, 2, 3])
                let attributes = try #require(try store.attributes(of: "http://golden.test/inline"))
                #expect(attributes.tags == ["a", "b"] && attributes.references == 2 && attributes.isPinned)
                // One hit when it was written, one just now.
                #expect(attributes.hitCount == 2 && attributes.created == Self.moment)
                let file = try #require(try store.get("http://golden.test/file"))
                #expect(try file.body.bytes() == body(3000, 2))
                #expect(try store.attributes(of: "http://golden.test/file")?.isInline == false)
                let empty = try #require(try store.get("http://golden.test/empty"))
                #expect(empty.body.length == .zero && empty.attributes.expires == Self.moment + .seconds(86_400))
                #expect(try store.get(Key(String(repeating: "long/", count: 200)))?.body.bytes() == body(10, 3))
                #expect(try store.pinnedTags() == ["b"])
                #expect(try store.keys(.prefix("http://golden.test/")).count == 4)
                if format >= 5 {
                    for length in [1_000, 100_000] {
                        let text = try #require(try store.get(Key("text:\(length)")))
                        #expect(try text.body.bytes() == CompressionTests.text(length))
                        #expect(text.attributes.encoding == .gzip)
                    }
                }
                // And it still works as a store.
                try store.put(body(5000, 9), for: "http://golden.test/new")
                // An entry gets the form of now when it is put again.
                try store.put(body(20, 4), for: "http://golden.test/empty")
                try #expect(store.update(inline, metadata: [4]))
                try store.flush()
                #expect(try store.check().isClean)
                try store.close()
            }
        }
    }
#endif
