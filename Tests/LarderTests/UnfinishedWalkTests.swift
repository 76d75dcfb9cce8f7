import LMDB
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// What an open does about a large index after processes died before they had walked over its pages.
@Suite struct UnfinishedWalkTests {
    /// A clock of which each reading is 70 seconds after the one before.
    private final class RushingClock: StoreClock {
        private let time = Mutex<UInt64>(0)

        func now() -> Timestamp { Timestamp(microseconds: 1_767_225_600_000_000) }

        func uptime() -> UInt64 {
            time.withLock { time in
                time += 70_000_000_000
                return time
            }
        }
    }

    private static let configuration = Configuration.testing {
        $0.bootIdentity = 1; $0.inlineThreshold = .kibibytes(64)
    }

    /// Makes a store of more pages than an open walks over, as processes leave it that died one after the other.
    private func fill(_ path: FilePath, deaths: Int) throws {
        let store = try Store(at: path, Self.configuration)
        for number in 0..<200 { try store.put(body(30_000, number), for: Key("\(number)")) }
        try store.flush()
        try store.close()
        try TestFiles.flipByte(of: IndexPages.data(path), at: 700_000)
        try TestFiles.flipByte(of: IndexPages.data(path), at: 700_000)
        try die(path, times: deaths)
    }

    private func die(_ path: FilePath, times: Int) throws {
        let files = try StoreFiles(root: Directory(path: path))
        let ledger = try Ledger(directory: files.index, staging: files.staging, instance: 0x1234, isAlone: true)
        for _ in 0..<times { WalkRecord(ledger.words).begin(run: 1, isAlone: true) }
    }

    private func require(_ path: FilePath, _ clock: any StoreClock = TestClock()) throws -> IndexTrust.Finding {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let files = try StoreFiles(root: Directory(path: path))
        var configuration = Self.configuration
        configuration.clock = clock
        return try IndexTrust(files: files, configuration: configuration).require(environment)
    }

    @Test func anOpenWaitsForTheWalkLongerAfterEachDeath() throws {
        try withDirectory { path in
            try fill(path, deaths: 0)
            try #expect(require(path).walk == .behind)
            for seconds: UInt64? in [1, 4, 16, 64, nil, nil] {
                try die(path, times: 1)
                let finding = try require(path)
                #expect(finding.walk == .first)
                #expect(finding.limit == seconds.map { $0 * 1_000_000_000 })
                // A walk that takes longer continues behind the open, unless it may take as long as it needs.
                try #expect(require(path, RushingClock()).walk == (seconds == nil ? .first : .behind))
            }
            try finish(Store(at: path, Self.configuration))
        }
    }

    /// Else every open after it would wait, for as long as processes are killed.
    @Test func anOpenThatWaitedNotesThatTheWalkIsFinished() throws {
        try withDirectory { path in
            try fill(path, deaths: 1)
            let store = try Store(at: path, Self.configuration)
            try #expect(WalkRecord.pending(store.engine.files.index) == 0)
            try #expect(WalkRecord.unfinished(store.engine.files.index) == 0)
            try finish(store)
        }
    }

    @Test func manyProcessesThatOpenAStoreAreNotManyDeaths() throws {
        try withDirectory { path in
            try fill(path, deaths: 1)
            let files = try StoreFiles(root: Directory(path: path))
            let ledger = try Ledger(directory: files.index, staging: files.staging, instance: 0x1234, isAlone: true)
            for _ in 0..<8 { WalkRecord(ledger.words).begin(run: 1, isAlone: false) }
            try #expect(WalkRecord.unfinished(files.index) == 1)
            ledger.release()
            try finish(Store(at: path, Self.configuration))
        }
    }

    #if LARDER_FAILPOINTS
        @Test func anOpenThatFailsIsNoDeath() throws {
            try withDirectory { path in
                try fill(path, deaths: 0)
                let scope = FaultScope(under: path.string, try #require(FaultRule.list("mdb_txn_begin.write=EIO@1")))
                try #expect(code { try Store(at: path, Self.configuration) } == .io)
                scope.lift()
                try #expect(WalkRecord.unfinished(Directory(path: path.appending("index"))) == 0)
                try finish(Store(at: path, Self.configuration))
            }
        }
    #endif

    @Test func anOwnerOfFreeSlotsIsNoInstance() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let files = store.engine.files
            try #expect(!Ledger.hasSlot(0, files.index))
            try #expect(!Ledger.hasSlot(1, files.index))
            try finish(store)
        }
    }

    @Test func aWalkInAnotherRunOfTheMachineCountsAfresh() throws {
        try withDirectory { path in
            try fill(path, deaths: 5)
            let files = try StoreFiles(root: Directory(path: path))
            let ledger = try Ledger(directory: files.index, staging: files.staging, instance: 0x1234, isAlone: true)
            WalkRecord(ledger.words).begin(run: 2, isAlone: true)
            ledger.release()
            try #expect(WalkRecord.unfinished(files.index) == 1)
            try finish(Store(at: path, Self.configuration))
        }
    }
}
