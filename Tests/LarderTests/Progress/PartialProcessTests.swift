import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Bodies that other processes write, and leave when they die.
struct PartialProcessTests {
    private static let length = 300_000

    /// What the worker writes.
    private static let bytes: [UInt8] = {
        var generator = SeededGenerator(seed: 5 + 31)
        var bytes: [UInt8] = withUnsafeBytes(of: UInt64(1).littleEndian) { Array($0) }
        while bytes.count < length { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
        return Array(bytes.prefix(length))
    }()

    private func start(_ path: FilePath, _ mode: String, _ faults: [String: String] = [:]) throws -> Worker {
        try Worker(store: path.string, mode: mode, seed: 0, count: Self.length, environment: faults)
    }

    @Test func theBodyOfADeadWriterIsTakenOver() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let worker = try start(path, "progressHold")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            let body = try #require(try store.partialBody(of: "p"))
            #expect(body.isBeingWritten && body.ranges == [0..<150_000] && body.metadata == [1])
            try #expect(body.bytes(in: 0..<300_000) == Array(Self.bytes[..<150_000]))
            try #expect(code { try store.partialWriter(for: "p") } == .locked)
            // The file of the writer that is alive.
            #expect(store.stagedFiles.count == 1)
            try #expect(store.isClaimed("p"))
            worker.kill()
            _ = worker.finish()
            try #expect(store.partialBody(of: "p")?.isBeingWritten == false)
            let writer = try store.partialWriter(for: "p")
            #expect(writer.ranges == [0..<150_000] && writer.metadata == [1])
            try writer.write(Self.bytes[150_000...], at: 150_000)
            try writer.commit()
            try #expect(store.bytes("p") == Self.bytes)
            try store.engine.writing?.recovery.sweepDead()
            try finish(store)
        }
    }

    /// The claim of a writer is that of a computation.
    @Test func readThroughWaitsForADownloadOfAnotherProcess() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let worker = try start(path, "progressWait")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            let task = Task {
                try await store.value(for: "p", ReadThroughOptions(others: .wait(.seconds(600)))) { _ in Computed([1]) }
            }
            try await store.put(Array("c".utf8), for: "go")
            try await store.perform { try $0.flush() }
            let found = try await task.value?.body.bytes()
            #expect(found == Self.bytes)
            #expect(worker.finish().last == "OK")
            try finish(store)
        }
    }

    @Test func aDeadWritersBodyIsDisplaced() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing(budget: Budget(bytes: .mebibytes(4))))
            let worker = try start(path, "progressHold")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            for number in 0..<40 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            try store.flush()
            try #expect(store.partialBody(of: "p")?.isBeingWritten == true)
            worker.kill()
            _ = worker.finish()
            for number in 40..<80 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            try store.flush()
            try #expect(store.partialBody(of: "p") == nil)
            try finish(store)
        }
    }

    /// `c`: it commits. `d`: it finds the same bytes stored already. `s`: it leaves the body. `k`: it dies.
    @Test(arguments: ["c", "d", "s", "k", "r"])
    func aFollowerReadsWhatAnotherProcessWrites(_ order: String) async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let worker = try start(path, "progressWait")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            let body = try #require(try await store.partial("p"))
            let hasRead = Latch()
            let task = Task {
                var all: [UInt8] = []
                for try await piece in body.follow() {
                    all += piece
                    hasRead.open()
                }
                return all
            }
            await hasRead.wait()
            switch order {
            case "k": worker.kill()
            case "r":
                try await store.remove("p")
                try await store.perform { try $0.flush() }
            default:
                try await store.put(Array(order.utf8), for: "go")
                try await store.perform { try $0.flush() }
            }
            switch order {
            case "c", "d": try await #expect(task.value == Self.bytes)
            case "r": try await #expect(code { try await task.value } == .gone)
            default: try await #expect(code { try await task.value } == .incomplete)
            }
            worker.kill()
            _ = worker.finish()
            try store.engine.writing?.recovery.sweepDead()
            try finish(store)
        }
    }

    /// Nothing was read yet that the bytes could be compared with.
    @Test func aFollowerDoesNotContinueWithAnUnrelatedPut() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let worker = try start(path, "progressHold")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            let found = try #require(try await store.partial("p"))
            let task = Task {
                var all: [UInt8] = []
                for try await piece in found.follow(from: 150_000) { all += piece }
                return all
            }
            try await store.put(body(Self.length, 7), for: "p")
            try await #expect(code { _ = try await task.value } == .gone)
            worker.kill()
            _ = worker.finish()
            try store.engine.writing?.recovery.sweepDead()
            try finish(store)
        }
    }

    @Test func anIdleWriterKeepsItsBodyForDays() throws {
        try withDirectory { path in
            let clock = TestClock(wall: SystemClock().now())
            let store = try Store(at: path, .testing(clock: clock))
            let worker = try start(path, "progressHold")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            clock.advance(by: .seconds(100 * 3600))
            // A new lease looks for those whose time is over.
            for number in 0..<4 { _ = try store.lease(Key("l\(number)"), for: .seconds(60)) }
            try #expect(code { try store.partialWriter(for: "p") } == .locked)
            try #expect(store.partialBody(of: "p")?.isBeingWritten == true)
            worker.kill()
            _ = worker.finish()
            try #expect(store.partialBody(of: "p")?.isBeingWritten == false)
            try store.partialWriter(for: "p").cancel()
            try finish(store)
        }
    }

    /// As cleaners of temporary files do.
    @Test func aWriterWhoseLockFileWasRemovedKeepsItsBody() throws {
        try withDirectory { path in
            var store = try Store(at: path, .testing())
            let own = Layout.instanceLock(try #require(store.engine.writing?.lock.instance))
            let worker = try start(path, "progressHold")
            worker.waitUntilReady()
            worker.waitForLine("HALF")
            let staging = path.appending("staging")
            let locks = TestFiles.names(in: staging).filter { $0.hasSuffix(".lock") && $0 != own }
            #expect(locks.count == 1)
            for name in locks { TestFiles.remove(staging.appending(name)) }
            try #expect(code { try store.partialWriter(for: "p") } == .locked)
            try #expect(store.partialBody(of: "p")?.isBeingWritten == true)
            worker.kill()
            _ = worker.finish()
            // Whether it lives only a store that is alone can tell.
            try store.close()
            store = try Store(at: path, .testing())
            try #expect(store.partialWriter(for: "p").ranges == [0..<150_000])
            try finish(store)
        }
    }

    #if LARDER_FAILPOINTS
        private static let steps = [
            "commit.before-trash", "commit.trashed", "commit.before", "commit.after", "commit.surplus-dropped",
            "publish.before", "publish.renamed", "partial.begun", "partial.taken", "partial.written", "partial.sealed",
            "batch.before-staging-sync", "batch.after-staging-sync", "batch.before-index-sync",
            "batch.after-index-sync", "reap.before", "close.batch-written",
        ]

        @Test(arguments: steps)
        func aWriterKilledAtAnyStepLeavesNoWrongByte(_ step: String) throws {
            var kills = 0
            for hit in [1, 2, 3, 5, 8, 13] {
                try withDirectory { path in
                    try Store(at: path, .testing()).close()
                    let worker = try start(path, "progress", [Failpoints.variable: "\(step)=kill@\(hit)"])
                    let lines = worker.finish()
                    let what = "\(step)@\(hit): \(lines)"
                    #expect(!lines.contains { $0.hasPrefix("BAD") }, "\(what)")
                    if lines.last != "OK" { kills += 1 }
                    let store = try Store(at: path, .testing())
                    try verify(store)
                    let isDone = lines.contains("DONE")
                    if let found = try store.bytes("p") {
                        #expect(found == Self.bytes, "\(what)")
                    } else {
                        #expect(!isDone, "\(what)")
                        let writer = try store.partialWriter(for: "p", total: ByteCount(Self.length))
                        if lines.contains("LEFT") { #expect(writer.ranges.first == 0..<200_000, "\(what)") }
                        for range in writer.ranges {
                            let there = try writer.bytes(in: range)
                            #expect(
                                there == Array(Self.bytes[Int(range.lowerBound)..<Int(range.upperBound)]), "\(what)")
                        }
                        try writer.write(Self.bytes, at: 0)
                        try writer.commit()
                        try #expect(store.bytes("p") == Self.bytes, "\(what)")
                    }
                    try finish(store)
                }
            }
            #expect(kills > 0)
        }
    #endif
}
