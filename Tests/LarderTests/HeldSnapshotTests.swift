import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A full store beside a reader that holds on to its snapshot.
@Suite struct HeldSnapshotTests {
    /// What puts came to beside a held snapshot.
    struct Outcome {
        var refused = 0
        var peak: Int64 = 0
    }

    /// Durable puts into a store whose budget is full.
    private func put(_ count: Int, of length: Int, into store: Store, _ name: String = "new") throws -> Outcome {
        var outcome = Outcome()
        for number in 0..<count {
            do {
                try store.put(
                    body(length, 100_000 + number), for: Key("\(name)\(number)"), PutOptions(durability: .durable))
            } catch let error as LarderError where error.code == .noSpace {
                outcome.refused += 1
            }
            // A walk over the directory takes longer than the put.
            if number % 16 == 0 { outcome.peak = max(outcome.peak, recount(store.path)) }
        }
        return outcome
    }

    private func withFullStore(_ bytes: ByteCount, _ lengths: [Int], _ body: (Store) throws -> Void) throws {
        try withStore(configuration: .testing(budget: Budget(bytes: bytes)) { $0.inlineThreshold = .kibibytes(64) }) {
            store in
            try store.put(TestSupport.body(100), for: "held", PutOptions(isPinned: true))
            var stored: Int64 = 0
            var number = 0
            while stored < bytes.bytes * 5 / 4 {
                let length = lengths[number % lengths.count]
                try store.put(TestSupport.body(length, number), for: Key("old\(number)"))
                stored += Int64(length)
                number += 1
            }
            try store.flush()
            try body(store)
        }
    }

    private static let mixes: [(ByteCount, [Int])] = [
        (.mebibytes(16), [3900]), (.mebibytes(16), [500, 3900, 60_000, 400_000]), (.mebibytes(16), [400_000]),
        (.mebibytes(48), [20_000]),
    ]

    /// In one process: so it can be seen that what the snapshot shows stays whole.
    @Test(arguments: mixes)
    func putsGoOnBesideAHeldSnapshotWhichStaysWhole(_ bytes: ByteCount, _ lengths: [Int]) throws {
        try withFullStore(bytes, lengths) { store in
            let index = store.engine.index
            var before = 0
            try store.engine.readLong { snapshot in
                // Displacement in the background may run until the snapshot is taken.
                before = Int(clamping: try index.state(snapshot).entryCount)
                for length in lengths {
                    let outcome = try put(120 / lengths.count, of: length, into: store, "n\(length)-")
                    #expect(outcome.refused == 0, "of length \(length)")
                    #expect(outcome.peak <= bytes.bytes)
                }
                // It still has every row and every body in the index as they were.
                var count = 0
                try snapshot.withCursor(index.entries) { cursor in
                    var pair = try cursor.first()
                    while let (key, value) = pair {
                        let record = try #require(EntryRecord(value))
                        try #require(EntryView(value)?.isIntact(under: Array(key)) == true)
                        let blob = try #require(try snapshot.get(index.blobs, record.blob))
                        let head = try #require(BlobRecord(blob))
                        if head.location == .inline {
                            try #require(Digest.of(BlobRecord.inlineBytes(blob)) == head.digest)
                        }
                        count += 1
                        pair = try cursor.next()
                    }
                }
                #expect(count == before)
            }
            // Most of what was there is there still, and all room comes back.
            if lengths == [3900] { try #expect(store.statistics().entryCount > before * 3 / 4) }
            let after = try put(40, of: lengths[0], into: store, "after")
            #expect(after.refused == 0)
            #expect(after.peak <= bytes.bytes)
        }
    }

    @Test(arguments: [false, true])
    func aReaderOfAnotherProcessThatIsSlowOrStoppedMakesNoPutFail(_ isStopped: Bool) throws {
        try withFullStore(.mebibytes(16), [3900]) { store in
            let worker = try Worker(store: store.path.string, mode: "hold", seed: 1, count: 1)
            worker.waitUntilReady()
            worker.waitForLine("HELD")
            // Not inside a write transaction of its own: that would stop all writers, as LMDB's lock does.
            if isStopped { try store.engine.index.environment.write { _ in worker.stop() } }
            let outcome = try put(200, of: 3900, into: store)
            #expect(outcome.refused == 0)
            #expect(outcome.peak <= 16 << 20)
            worker.kill()
            _ = worker.finish()
            let after = try put(40, of: 3900, into: store, "after")
            #expect(after.refused == 0)
        }
    }

    @Test(arguments: ["collect", "check"])
    func aCollectionOfAnotherProcessMakesNoPutFail(_ mode: String) throws {
        try withFullStore(.mebibytes(16), [3900]) { store in
            let worker = try Worker(store: store.path.string, mode: mode, seed: 1, count: 5)
            worker.waitUntilReady()
            let outcome = try put(120, of: 3900, into: store)
            #expect(outcome.refused == 0)
            #expect(outcome.peak <= 16 << 20)
            try #expect(#require(worker.finish().last) == "OK")
        }
    }

    @Test func aLongReadLetsGoWhenAWriterAsksAndIsMorePatientEachTime() throws {
        try withStore { store in
            let ledger = try #require(store.engine.writing?.ledger)
            let clock = SystemClock()
            var lasted: [UInt64] = []
            let result = try Yielding.run(store.engine.files) { poll -> Int in
                let began = clock.uptime()
                defer { lasted.append(clock.uptime() - began) }
                if lasted.count == 3 { return 7 }
                while true {
                    PageWishes(ledger.words).ask()
                    try poll()
                }
            }
            #expect(result == 7)
            #expect(lasted[1] >= 10_000_000 && lasted[2] >= 20_000_000)
        }
    }
}
