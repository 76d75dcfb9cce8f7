import LMDB
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// What the first open after a power loss, and those that follow, make of a store. Modelled by a copy of the directory
/// of an open store, opened with another boot identity; bytes that were not synced are lost by hand.
struct PowerLossTests {
    private let bytes = body(50_000)
    private var digest: Digest { Digest.of(bytes) }

    private func configuration(boot: UInt64, _ change: (inout Configuration) -> Void = { _ in }) -> Configuration {
        .testing {
            $0.bootIdentity = boot
            change(&$0)
        }
    }

    private func blob(_ path: FilePath) -> FilePath { path.appending("blobs").appending(Layout.blob(digest)) }

    // MARK: Repair as the first step

    /// A body file that lost bytes takes less space than recorded; the record must not be corrected instead of the body
    /// refused.
    @Test(arguments: [true, false])
    func repairFindsABodyWithAHole(_ isPublished: Bool) throws {
        try withPowerLoss(configuration(boot: 1), of: { try $0.put(bytes, for: "k") }) { path in
            var file = blob(path)
            if !isPublished {
                // The rename was not on disk either: the sweep of the open publishes the file.
                let name = try #require(try unpublishedToken(path))
                let staged = path.appending("staging").appending(name)
                try #require(rename(file.string, staged.string) == 0)
                file = staged
            }
            try TestFiles.punch(file, from: 8192)
            let store = try Store(at: path, configuration(boot: 2) { $0.isScrubbing = false })
            let report = try store.check(repair: true)
            #expect(report.violations.contains { $0.invariant == .I7 })
            #expect(report.isRepaired)
            try #expect(store.get("k") == nil)
            try store.put(bytes, for: "other", PutOptions(durability: .durable))
            try #expect(store.bytes("other") == bytes)
            try finish(store)
        }
    }

    /// The name in `staging/` of the one file that a checkpoint has not seen.
    private func unpublishedToken(_ path: FilePath) throws -> String? {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let index = try #require(try Index(environment: environment, create: false))
        return try environment.read { transaction in
            try transaction.withCursor(index.unpublished) {
                try $0.first().flatMap { StagingToken(indexKey: $0.0) }?.name
            }
        }
    }

    /// A removal that was not committed left the file in `trash/`, and the bytes were lost: what is put back is
    /// compared, too.
    @Test func repairComparesABodyThatIsPutBack() throws {
        try withPowerLoss(configuration(boot: 1), of: { try $0.put(bytes, for: "k") }) { path in
            let store = try Store(at: path, configuration(boot: 2) { $0.isScrubbing = false })
            let discarded = path.appending("trash").appending(
                Layout.trash(StagingToken(instance: 77, sequence: 1), digest))
            try #require(rename(blob(path).string, discarded.string) == 0)
            try TestFiles.punch(discarded, from: 8192)
            let report = try store.check(repair: true)
            #expect(report.violations.contains { $0.invariant == .I7 })
            try #expect(store.get("k") == nil)
            try store.put(bytes, for: "k")
            try #expect(store.bytes("k") == bytes)
            try finish(store)
        }
    }

    // MARK: Those who only read

    /// A process was killed between the rename to `trash/` and the commit, which is therefore not made.
    @Test func readersSeeAnEntryWhoseRemovalWasNotCommitted() throws {
        try withPowerLoss(configuration(boot: 1), of: { try $0.put(bytes, for: "k", PutOptions(durability: .durable)) })
        { path in
            let discarded = path.appending("trash").appending(
                Layout.trash(StagingToken(instance: 77, sequence: 1), digest))
            try #require(rename(blob(path).string, discarded.string) == 0)
            for boot in [1, 2] as [UInt64] {
                let reader = try Store(at: path, configuration(boot: boot) { $0.isReadOnly = true })
                try #expect(reader.bytes("k") == bytes)
                try #expect(reader.check().violations.map(\.description) == [])
                try #expect(reader.statistics().allocatedBytes.bytes == recount(path))
                try reader.close()
            }
            try #require(TestFiles.exists(discarded))
            let writer = try Store(at: path, configuration(boot: 2))
            #expect(!TestFiles.exists(discarded))
            try #expect(writer.bytes("k") == bytes)
            try finish(writer)
        }
    }

    #if LARDER_FAILPOINTS
        /// Whatever creation was interrupted by: there is no store yet, and nothing is damaged.
        @Test(arguments: [
            "mdb_env_open=EIO", "mdb_dbi_open.create=EIO", "mdb_dbi_open.create=EIO@7+", "mdb_put=EIO",
            "mdb_env_sync=EIO",
            "rename=EIO",
        ])
        func aStoreThatIsBeingMadeIsNotCorruptToReaders(_ rule: String) throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list(rule)))
                try #expect(code { try Store(at: path, configuration(boot: 1)) } == .io)
                #expect(scope.injected > 0)
                scope.lift()
                let reading = configuration(boot: 1) { $0.isReadOnly = true }
                try #expect(code { try Store(at: path, reading) } == .invalidArgument)
                let store = try Store(at: path, configuration(boot: 1))
                try store.put(bytes, for: "k")
                try finish(store)
            }
        }
    #endif

    // MARK: The first open after a start of the machine

    /// Events of a kind, to be waited for.
    private final class Events: Sendable {
        private let monitor = Monitor()
        private let seen = Mutex<[StoreEvent]>([])

        func note(_ event: StoreEvent) {
            monitor.locked {
                seen.withLock { $0.append(event) }
                monitor.signal()
            }
        }

        func wait<R>(_ find: (StoreEvent) -> R?) -> R {
            monitor.locked {
                while true {
                    let events = seen.withLock { $0 }
                    if let found = events.lazy.compactMap(find).first { return found }
                    monitor.wait()
                }
            }
        }
    }

    private func isHit(_ lookup: Store.Lookup) -> Bool { if case .hit = lookup { true } else { false } }
    private func isDue(_ lookup: Store.Lookup) -> Bool { if case .due = lookup { true } else { false } }

    /// Only the files that may have lost bytes are read on another thread, and only until that has been done once.
    @Test(arguments: [Verification.afterUncleanShutdown, .never])
    func lookupsWaitForSuspectFilesOnly(_ verification: Verification) async throws {
        try withPowerLoss(configuration(boot: 1)) { store in
            try store.put(body(100), for: "inline")
            try store.put(body(9000), for: "synced")
            try store.checkpoint()
            try store.put(bytes, for: "suspect")
        } _: { path in
            let store = try Store(
                at: path,
                configuration(boot: 2) {
                    $0.isScrubbing = false
                    $0.verification = verification
                })
            try #expect(isHit(store.lookUp("inline")))
            try #expect(isHit(store.lookUp("synced")))
            try #expect(isDue(store.lookUp("suspect")) == (verification != .never))
            try #expect(store.bytes("suspect") == bytes)
            try #expect(isHit(store.lookUp("suspect")))
            // A lookup that found nothing is not a hit. Hits are hints: one may be lost when it meets a commit.
            let hits = try #require(try store.attributes(of: "suspect")?.hitCount)
            #expect(hits > 0 && hits <= (verification == .never ? 3 : 2))
            try finish(store)
        }
    }

    /// A clean shutdown is distinguished from a crash: what the last store closed is on disk.
    @Test(arguments: [0, 2] as [UInt64])
    func nothingIsSuspectAfterAProperClose(_ boot: UInt64) throws {
        try withDirectory { path in
            let first = try Store(at: path, configuration(boot: boot == 0 ? 0 : 1))
            try first.put(bytes, for: "k")
            try first.put(body(100), for: "inline")
            try first.close()
            for reads in [true, false] {
                let store = try Store(at: path, configuration(boot: boot) { $0.isReadOnly = reads })
                #expect(store.engine.damage.suspects.isEmpty)
                try #expect(isHit(store.lookUp("k")))
                try store.close()
            }
        }
    }

    /// Without an identity of the machine's run every open of a store that was not closed is taken for the first after
    /// a crash.
    @Test func aMachineThatDoesNotTellItsRunsIsTakenToHaveCrashed() throws {
        try withPowerLoss(configuration(boot: 0), of: { try $0.put(bytes, for: "k") }) { path in
            try TestFiles.flipByte(of: blob(path), at: 100)
            let store = try Store(at: path, configuration(boot: 0) { $0.isScrubbing = false })
            #expect(!store.engine.damage.suspects.isEmpty)
            try #expect(store.get("k") == nil)
            try finish(store)
        }
    }

    @Test func runsOfTheMachineAreToldApart() {
        var known = StoreState()
        known.boot = 7
        for (boot, isShared, wasClosed, isNew, isSuspect) in [
            (7, false, false, false, false), (8, false, false, true, true), (8, false, true, true, false),
            (0, true, false, false, false), (0, false, false, true, true), (0, false, true, true, false),
        ] as [(UInt64, Bool, Bool, Bool, Bool)] {
            var state = known
            #expect(state.note(boot: boot, isShared: isShared, wasClosed: wasClosed) == isNew)
            #expect(state.suspects.isEmpty != isSuspect)
            #expect(state.isSuspect(epoch: 1) == isSuspect)
        }
    }

    /// What is found out once is known to every later open: damage is quarantined, what matches is suspect no more, and
    /// files without a record are gone.
    @Test func anUncleanEndIsLookedAfterOnce() throws {
        try withPowerLoss(configuration(boot: 1)) { store in
            try store.put(bytes, for: "torn")
            for number in 0..<5 { try store.put(body(9000, number), for: Key("\(number)")) }
        } _: { path in
            try TestFiles.punch(blob(path), from: 8192)
            let orphan = Digest.of([42])
            let file = path.appending("blobs").appending(Layout.blob(orphan))
            try TestFiles.write(body(7000), to: file)
            let events = Events()
            let second = try Store(at: path, configuration(boot: 2) { $0.observer = { events.note($0) } })
            let counts = events.wait { event -> [Int]? in
                if case .scrubbed(let compared, let damaged, let orphans) = event {
                    [compared, damaged, orphans]
                } else {
                    nil
                }
            }
            #expect(counts == [6, 1, 1])
            #expect(!TestFiles.exists(file))
            try #expect(second.get("torn") == nil)
            for number in 0..<5 { try #expect(isHit(second.lookUp(Key("\(number)")))) }
            try finish(second)
            let third = try Store(at: path, configuration(boot: 2))
            #expect(third.engine.damage.suspects.isEmpty)
            try finish(third)
        }
    }

    /// A store that is closed before it has been looked after says nothing it does not know.
    @Test func whatOneOpenDoesNotLookAfterTheNextDoes() throws {
        try withPowerLoss(configuration(boot: 1), of: { try $0.put(bytes, for: "torn") }) { path in
            try TestFiles.punch(blob(path), from: 8192)
            try Store(at: path, configuration(boot: 2) { $0.isScrubbing = false }).close()
            for boot in [2, 3] as [UInt64] {
                let store = try Store(at: path, configuration(boot: boot) { $0.isReadOnly = true })
                try #expect(store.get("torn") == nil)
                try store.close()
            }
            let events = Events()
            let last = try Store(at: path, configuration(boot: 3) { $0.observer = { events.note($0) } })
            #expect(events.wait { if case .scrubbed(_, let damaged, _) = $0 { damaged } else { nil } } == 1)
            try finish(last)
        }
    }

    #if LARDER_FAILPOINTS
        /// Whatever an open waits for: only who wants the same store waits with it.
        @Test func anOpenThatTakesLongHoldsUpNoOther() throws {
            try withDirectory { path in
                let (slow, other) = (path.appending("slow"), path.appending("other"))
                let scope = FaultScope(under: slow.string)
                let (reached, released) = (Counter(), Counter())
                scope.at("open.mapped") {
                    reached.increment()
                    released.wait(for: 1)
                }
                let configuration = configuration(boot: 1)
                let threads = Threads(2) { _ in try Store(at: slow, configuration).close() }
                reached.wait(for: 1)
                let store = try Store(at: other, configuration)
                try store.put([1], for: "k")
                try finish(store)
                released.increment()
                try threads.join()
            }
        }
    #endif
}
