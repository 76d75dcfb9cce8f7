import Foundation
import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if _pointerBitWidth(_64) && _endian(little)
    /// LMDB 0.9 and 1.0 refuse each other's files. `Golden/format-2` was written with 0.9, `Golden/format-2-lmdb-1`
    /// with 1.0.2; one of them is of the other version than the library at hand.
    struct LibraryVersionTests {
        private static var other: String { PageFormat.current == .version1 ? "format-2-lmdb-1" : "format-2" }

        private func configuration() -> Configuration {
            .testing { $0.clock = TestClock(wall: Timestamp(seconds: 1_800_000_000)) }
        }

        private func withGolden(_ name: String, _ body: (FilePath) throws -> Void) throws {
            try withDirectory { directory in
                let golden = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                    "Golden/\(name)")
                let path = directory.appending("store")
                try FileManager.default.copyItem(at: golden, to: URL(fileURLWithPath: path.string))
                try body(path)
            }
        }

        @Test func anIndexOfTheOtherVersionIsRefusedUntouchedAndSaysSo() throws {
            try withGolden(Self.other) { path in
                let data = path.appending("index/data.mdb")
                let before = try TestFiles.read(data)
                for isReadOnly in [false, true] {
                    var configuration = configuration()
                    configuration.isReadOnly = isReadOnly
                    let error = try #require(throws: LarderError.self) { try Store(at: path, configuration) }
                    #expect(error.code == .formatMismatch)
                    #expect(error.message.contains("verify --repair"))
                    #expect(error.message.contains("LMDB 0.9") && error.message.contains("LMDB 1.0"))
                }
                try #expect(TestFiles.read(data) == before)
            }
        }

        @Test func aRebuildWritesItForTheLibraryAtHandAndKeepsAllEntries() throws {
            try withGolden(Self.other) { path in
                let report = try Store.rebuildIndex(at: path, configuration())
                #expect(report.damages.count == 1)
                let store = try Store(at: path, configuration())
                try #expect(store.budget() == Budget(bytes: .mebibytes(64), entries: 1000, largestEntry: .mebibytes(8)))
                try #expect(store.bytes("http://golden.test/inline") == body(100, 1))
                try #expect(store.bytes("http://golden.test/file") == body(3000, 2))
                try #expect(store.bytes("http://golden.test/empty") == [])
                try #expect(store.bytes(Key(String(repeating: "long/", count: 200))) == body(10, 3))
                try #expect(store.pinnedTags() == ["b"])
                try finish(store)
            }
        }

        /// The walk reads both formats, whatever the library.
        @Test(arguments: ["format-2", "format-2-lmdb-1"]) func everyPageOfBothVersionsIsRead(name: String) throws {
            try withGolden(name) { path in
                let pages = MemoryPages(try TestFiles.read(path.appending("index/data.mdb")))
                let metas = try MetaPage.all(pages)
                #expect(metas.count == 2)
                let meta = try #require(metas.first)
                #expect(meta.format == (name == "format-2" ? .version1 : .version3))
                var entries = 0
                var walk = PageWalk(pages, meta, bigValues: .heads)
                try walk.run { tree, _, _ in if tree == "entries" { entries += 1 } }
                #expect(entries == 5)
            }
        }
    }
#endif
