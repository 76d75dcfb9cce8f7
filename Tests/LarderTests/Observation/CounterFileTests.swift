import SystemPackage
import TestSupport
import Locks
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// The file that the processes of a store count in: what was counted stays, and no state of the file does harm.
@Suite struct CounterFileTests {
    private func file(of path: FilePath) -> FilePath { path.appending("index").appending("counters") }

    /// A closed store with one hit.
    private func makeStore(_ path: FilePath) throws {
        let store = try Store(at: path, .testing())
        try store.put(body(100), for: "k")
        _ = try store.get("k")
        try store.close()
    }

    /// Opens the store, looks two keys up, and returns what it has counted.
    private func use(_ path: FilePath) throws -> StoreCounters {
        let store = try Store(at: path, .testing())
        #expect(try store.get("k") != nil)
        #expect(try store.get("none") == nil)
        let counters = try store.statistics().counters
        try finish(store)
        return counters
    }

    @Test func countsStayWhenAStoreIsClosed() throws {
        try withDirectory { path in
            try makeStore(path)
            var counters = StoreCounters()
            // More often than there are areas.
            for _ in 0..<20 { counters = try use(path) }
            #expect(counters.hits == 21)
            #expect(counters.misses == 20)
            #expect(counters.puts == 1)
            #expect(TestFiles.status(file(of: path))?.st_size == 32_768)
        }
    }

    @Test func theLayoutFillsTheFile() {
        #expect(CounterLayout.area(CounterLayout.areaCount) * 8 == CounterLayout.fileLength)
        #expect(CounterLayout.area(1) % 8 == 0, "an area begins with a cache line")
        #expect(CounterLayout.scalarsAt + CounterLayout.Scalar.allCases.count <= CounterLayout.timingsAt)
        let last = CounterLayout.timing(.commit) + CounterLayout.bucketCount
        #expect(last == CounterLayout.areaWords - 1)
    }

    /// The example in `docs/format.md`.
    @Test func theFileIsAsDocumented() throws {
        try withDirectory { path in
            let clock = TestClock()
            let store = try Store(at: path, .testing(clock: clock))
            try store.put(body(100), for: "k")
            try store.close()
            let bytes = try TestFiles.read(file(of: path))
            #expect(Array(bytes[..<8]) == [0x31, 0x43, 0x72, 0x65, 0x64, 0x72, 0x61, 0x4C])
            #expect(Array(bytes[8..<16]) == [1, 0, 0, 0, 0, 0, 0, 0])
            func word(_ number: Int) -> UInt64 {
                bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: number * 8, as: UInt64.self) }
            }
            #expect(word(2) == 1_767_225_600_000_000)
            // Area 1 is that of the first process: its puts, and their bytes.
            #expect(word(128 + 248 + 128) == 1)
            #expect(word(128 + 248 + 129) == 100)
        }
    }

    enum Damage: CaseIterable {
        case missing, empty, cut, long, zeros, noise, link, hardLink, fifo, unwritable
    }

    @Test(arguments: Damage.allCases)
    func aFileThatCannotBeUsedIsMadeAgain(_ damage: Damage) throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try makeStore(path)
            let file = file(of: path)
            let other = directory.appending("other")
            try TestFiles.write(body(32_768), to: other)
            switch damage {
            case .missing: TestFiles.remove(file)
            case .empty: try TestFiles.truncate(file, to: 0)
            case .cut: try TestFiles.truncate(file, to: 20_000)
            case .long: try TestFiles.truncate(file, to: 65_536)
            case .zeros: try TestFiles.write([UInt8](repeating: 0, count: 32_768), to: file)
            case .noise: try TestFiles.write(body(32_768), to: file)
            case .link:
                TestFiles.remove(file)
                try #require(symlink(other.string, file.string) == 0)
            case .hardLink:
                try #require(link(file.string, directory.appending("second").string) == 0)
            case .fifo:
                TestFiles.remove(file)
                try #require(mkfifo(file.string, 0o600) == 0)
            case .unwritable: try #require(chmod(file.string, 0o400) == 0)
            }
            let isKept = damage == .unwritable && geteuid() == 0
            var counters = try use(path)
            #expect(counters.hits == (isKept ? 2 : 1))
            #expect(counters.misses == 1)
            counters = try use(path)
            #expect(counters.hits == (isKept ? 3 : 2))
            #expect(TestFiles.status(file).map { $0.st_mode & S_IFMT } == S_IFREG)
            #expect(try TestFiles.read(other) == body(32_768), "nothing outside the store was written to")
        }
    }

    /// Any number in any counter: none traps, and all continue to count.
    @Test(arguments: [0xFF, 0x7F, 0x80] as [UInt8])
    func absurdNumbersDoNoHarm(_ byte: UInt8) throws {
        try withDirectory { path in
            try makeStore(path)
            var bytes = try TestFiles.read(file(of: path))
            for position in 16..<bytes.count { bytes[position] = byte }
            try TestFiles.write(bytes, to: file(of: path))
            let counters = try use(path)
            _ = (counters.displaced.total, counters.lookupTimes.mean, counters.hitRatio)
            _ = (counters.lookupTimes.percentile(0.5), counters.commitTimes.count, counters.since.description)
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            _ = try reader.get("k")
            _ = try reader.statistics().counters
            try reader.close()
        }
    }

    @Test func aFileOfANewerVersionStaysAsItIs() throws {
        try withDirectory { path in
            try makeStore(path)
            var bytes = try TestFiles.read(file(of: path))
            bytes[8] = 2
            try TestFiles.write(bytes, to: file(of: path))
            let messages = Mutex<[String]>([])
            let store = try Store(
                at: path,
                .testing {
                    $0.logger = .init(label: "test") { _ in Recorder { text in messages.withLock { $0.append(text) } } }
                })
            #expect(try store.get("k") != nil)
            // What it has counted itself.
            #expect(try store.statistics().counters.hits == 1)
            try finish(store)
            #expect(try TestFiles.read(file(of: path)) == bytes)
            #expect(messages.withLock { $0 } == ["the store's counters are not shared"])
        }
    }

    @Test func aDirectoryInItsPlaceKeepsNoStoreFromOpening() throws {
        try withDirectory { path in
            try makeStore(path)
            TestFiles.remove(file(of: path))
            try #require(mkdir(file(of: path).string, 0o700) == 0)
            #expect(try use(path).hits == 1)
            #expect(try use(path).hits == 1)
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            #expect(try reader.statistics().counters.hits == 0)
            try reader.close()
        }
    }

    // MARK: Stores that change nothing

    @Test func aReadOnlyStoreReadsTheCountersAndChangesNone() throws {
        try withDirectory { path in
            try makeStore(path)
            let before = try TestFiles.read(file(of: path))
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            #expect(try reader.get("k") != nil)
            _ = try reader.withBody(of: "k") { _ in }
            #expect(try reader.get("none") == nil)
            let counters = try reader.statistics().counters
            #expect(counters.hits == 3)
            #expect(counters.misses == 1)
            #expect(counters.puts == 1)
            #expect(counters.bytesRead == ByteCount(300))
            try reader.close()
            #expect(try TestFiles.read(file(of: path)) == before)
        }
    }

    @Test func aReadOnlyStoreMakesNoFile() throws {
        try withDirectory { path in
            try makeStore(path)
            TestFiles.remove(file(of: path))
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            #expect(try reader.get("k") != nil)
            #expect(try reader.statistics().counters.hits == 1)
            try reader.close()
            #expect(!TestFiles.exists(file(of: path)))
        }
    }

    // MARK: Full disks

    #if LARDER_FAILPOINTS
        /// Models a disk without a free block, which refuses the file as a whole, and one that refuses its bytes.
        @Test(arguments: ["fallocate=ENOSPC@1", "pwrite=ENOSPC@1", "mmap=ENOMEM@2", "fallocate=EDQUOT@1"])
        func aFullDiskKeepsNoStoreFromOpening(_ fault: String) throws {
            try withDirectory { path in
                try makeStore(path)
                TestFiles.remove(file(of: path))
                do {
                    let scope = FaultScope(under: path.string)
                    scope.set(try #require(FaultRule.list(fault)))
                    defer { scope.lift() }
                    #expect(try use(path).hits == 1)
                }
                // Once there is room, it is shared again.
                let again = try use(path)
                #expect(again.hits == 1)
                #expect(try use(path).hits == 2)
            }
        }
    #endif

    // MARK: Several processes

    @Test func countsOfProcessesAddUp() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            let workers = try (0..<3).map {
                try Worker(store: path.string, mode: "tally", seed: UInt64($0), count: 200)
            }
            for worker in workers { #expect(worker.finish().last == "OK") }
            let store = try Store(at: path, .testing())
            let counters = try store.statistics().counters
            #expect(counters.puts == 600)
            #expect(counters.bytesWritten == ByteCount(60_000))
            #expect(counters.hits == 1200)
            #expect(counters.bytesRead == ByteCount(120_000))
            #expect(counters.misses == 600)
            #expect(counters.removed == 3)
            #expect(counters.putTimes.count == 600)
            try finish(store)
        }
    }

    /// SIGKILL: what was counted is in the shared pages. The area of a killed process is used again, and keeps its sum.
    @Test func countsOfKilledProcessesStay() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            // More than there are areas, one after the other.
            for seed in 0..<18 as Range<UInt64> {
                let worker = try Worker(store: path.string, mode: "tallyAndWait", seed: seed, count: 20)
                worker.waitUntilReady()
                worker.waitForLine("TALLIED")
                worker.kill()
                _ = worker.finish()
            }
            let store = try Store(at: path, .testing())
            let counters = try store.statistics().counters
            #expect(counters.puts == 18 * 20)
            #expect(counters.hits == 18 * 40)
            #expect(counters.misses == 18 * 20)
            try finish(store)
        }
    }

    /// While others work, and more of them than there are areas: what each has done is seen at once.
    @Test func countsOfLivingProcessesAreSeen() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let workers = try (0..<17).map {
                try Worker(store: path.string, mode: "tallyAndWait", seed: UInt64($0), count: 10)
            }
            for worker in workers {
                worker.waitUntilReady()
                worker.waitForLine("TALLIED")
            }
            let counters = try store.statistics().counters
            #expect(counters.puts == 170)
            #expect(counters.hits == 340)
            #expect(counters.misses == 170)
            for worker in workers {
                worker.kill()
                _ = worker.finish()
            }
            try finish(store)
        }
    }
}
