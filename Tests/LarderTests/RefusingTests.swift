import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What is not a store, or a damaged or newer one, is refused with a clear code and left as it is.
@Suite struct RefusingTests {
    @Test func aFileInTheWayIsRefusedAndKept() throws {
        try withDirectory { path in
            let file = path.appending("file")
            try TestFiles.write([1, 2, 3], to: file)
            try #expect(code { try Store(at: file, .testing()) } == .invalidArgument)
            try #expect(code { try Store(at: file.appending("below"), .testing()) } == .io)
            try #expect(TestFiles.read(file) == [1, 2, 3])
        }
    }

    @Test func anotherProgramsDirectoryIsRefusedUntouched() throws {
        try withDirectory { path in
            try TestFiles.write([1], to: path.appending("holiday.jpg"))
            try #expect(code { try Store(at: path, .testing()) } == .formatMismatch)
            #expect(TestFiles.tree(path) == ["holiday.jpg"])
        }
    }

    /// The Finder of macOS leaves these in any directory it shows.
    @Test func whatTheFinderLeavesIsNoBodysBusiness() throws {
        try withDirectory { directory in
            let path = directory
            let names = [
                ".DS_Store", "._FORMAT", "blobs/.DS_Store", "blobs/ab/.DS_Store", "trash/.DS_Store", "index/._data.mdb",
            ]
            try TestFiles.write([1, 2], to: path.appending(".DS_Store"))
            let store = try Store(at: path, .testing(budget: Budget(bytes: .mebibytes(4))))
            for name in names { try TestFiles.write([1, 2], to: path.appending(name)) }
            try store.put(body(10_000), for: "a")
            try store.flush()
            try #expect(store.check(repair: true).violations.map(\.description) == [])
            try store.collect()
            try store.close()
            let again = try Store(at: path, .testing())
            try #expect(again.get("a")?.body.bytes() == body(10_000))
            try #expect(again.check().isClean)
            try again.close()
            try #expect(Store.rebuildIndex(at: path, .testing()).damages == [])
            for name in names { try #expect(TestFiles.read(path.appending(name)) == [1, 2]) }
        }
    }

    @Test(arguments: [
        "", "larder", "larder\nformat 1\nstore x", "LARDER\nformat 1\nstore x\n", "larder\nformat 0\nstore x\n",
        "larder\nformat -1\nstore x\n", "larder\nformat one\nstore x\n",
        "larder\nformat 99999999999999999999\nstore x\n",
        "larder\nformat 1\nstore x\n\n", "larder\nformat \(FormatFile.newestVersion + 1)\nstore x\n",
        "larder\nformat 9223372036854775807\nstore x\n",
    ])
    func aFormatFileThatIsNotOursIsRefusedUntouched(_ text: String) throws {
        try withDirectory { path in
            try TestFiles.write(Array(text.utf8), to: path.appending("FORMAT"))
            try #expect(code { try Store(at: path, .testing()) } == .formatMismatch)
            #expect(TestFiles.tree(path) == ["FORMAT"])
            try #expect(TestFiles.read(path.appending("FORMAT")) == Array(text.utf8))
        }
    }

    @Test func aNewerFormatIsRefusedAndNotDamaged() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100_000), for: "k")
            let identifier = store.identifier
            try store.close()
            let format = path.appending("FORMAT")
            let old = try TestFiles.read(format)
            let newer = "larder\nformat \(FormatFile.newestVersion + 1)\nstore \(identifier)\n"
            try TestFiles.write(Array(newer.utf8), to: format)
            let index = try TestFiles.read(path.appending("index/data.mdb"))
            try #expect(code { try Store(at: path, .testing()) } == .formatMismatch)
            try #expect(TestFiles.read(path.appending("index/data.mdb")) == index)
            // The fault lifted: everything is there.
            try TestFiles.write(old, to: format)
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("k") == body(100_000))
            try finish(again)
        }
    }

    /// In another process, which gives up the rights of root if it has them: root may open everything.
    @Test func aDirectoryWithoutPermissionIsRefused() throws {
        try withDirectory { path in
            let locked = path.appending("locked")
            #expect(mkdir(locked.string, 0o500) == 0)
            for store in [locked.appending("store"), locked] {
                let worker = try Worker(store: store.string, mode: "refused", seed: 65_534, count: 0)
                let lines = worker.finish()
                #expect(lines.last == "OK")
                #expect(lines.first?.hasPrefix("io permissionDenied: no permission to ") == true, "\(lines)")
                #expect(lines.first?.contains("\(locked)") == true, "\(lines)")
            }
            #expect(TestFiles.tree(locked) == [])
        }
    }

    @Test(arguments: [1, 2, 3])
    func anIndexCutShortIsCorruptionNotACrash(_ keptQuarters: Int64) throws {
        try withDirectory { path in
            let data = try makeStore(at: path)
            let length = Int64(try #require(TestFiles.status(data)).st_size)
            try TestFiles.truncate(data, to: length * keptQuarters / 4)
            try #expect(code { try Store(at: path, .testing()) } == .corruption)
            try #expect(code { try Store(at: path, .testing { $0.isReadOnly = true }) } == .corruption)
        }
    }

    @Test(arguments: [1, 151, 4096, 8192, 100_000])
    func anIndexThatIsNotLMDBIsCorruption(_ length: Int) throws {
        try withDirectory { path in
            let data = try makeStore(at: path)
            try TestFiles.write(body(length, 3), to: data)
            try #expect(code { try Store(at: path, .testing()) } == .corruption)
            #expect(TestFiles.status(data).map { Int($0.st_size) } == length)
        }
    }

    @Test func aSymbolicLinkInsideTheStoreIsNotFollowed() throws {
        try withDirectory { path in
            let store = path.appending("store")
            _ = try makeStore(at: store)
            let outside = path.appending("outside")
            #expect(mkdir(outside.string, 0o700) == 0)
            TestFiles.remove(store.appending("staging"))
            #expect(symlink(outside.string, store.appending("staging").string) == 0)
            let refused = try code { try Store(at: store, .testing()) }
            #expect(refused != nil)
            #expect(TestFiles.names(in: outside) == [])
        }
    }

    @Test func valuesOutOfRangeAreRefusedBeforeAnythingIsMade() throws {
        try withDirectory { path in
            let bad: [(inout Configuration) -> Void] = [
                { $0.budget = Budget(bytes: 1_048_575) }, { $0.budget = Budget(entries: 0) },
                { $0.budget = Budget(largestEntry: 0) }, { $0.inlineThreshold = 1_048_577 },
                { $0.watermarks = .init(high: 0.5, low: 0.6) }, { $0.watermarks = .init(high: 1.1, low: 0.6) },
                { $0.watermarks = .init(high: 0.9, low: 0) }, { $0.watermarks = .init(high: .nan, low: .nan) },
                { $0.version = "" }, { $0.version = String(repeating: "v", count: 201) },
            ]
            for change in bad {
                try #expect(code { try Store(at: path.appending("new"), .testing(change)) } == .invalidArgument)
            }
            #expect(TestFiles.names(in: path) == [])
            let store = try Store(at: path.appending("new"), .testing(budget: Budget(bytes: Budget.minimumBytes)))
            try finish(store)
        }
    }

    private func makeStore(at path: FilePath) throws -> FilePath {
        let store = try Store(at: path, .testing())
        for number in 0..<50 { try store.put(body(4000, number), for: Key("k\(number)")) }
        try store.close()
        return path.appending("index/data.mdb")
    }
}
