import Foundation
import Larder
import SystemPackage
import Testing
import TestSupport

/// Several processes on one store, living and dying. SIGKILL keeps the page cache: this models a crash of the process,
/// not of the machine.
@Suite(.serialized)
struct ProcessTests {
    @Test func severalProcessesWorkOnOneStore() throws {
        let path = temporaryStorePath()
        defer { removeTree(path) }
        try Store(at: path, Configuration(budget: Budget(bytes: .mebibytes(6)))).close()
        let workers = try (0..<3).map { try Worker(store: path.string, mode: "mixed", seed: UInt64($0), count: 1500) }
        let collector = try Worker(store: path.string, mode: "collect", seed: 0, count: 10)
        let sampler = BudgetSampler(path: path)
        for worker in workers + [collector] { #expect(worker.finish().last == "OK") }
        #expect(sampler.stop() <= ByteCount.mebibytes(6).bytes)
        try expectClean(path)
    }

    @Test func processesStoreAndDropTheSameBodies() throws {
        let path = temporaryStorePath()
        defer { removeTree(path) }
        try Store(at: path).close()
        let workers = try (0..<2).map { try Worker(store: path.string, mode: "same", seed: UInt64($0), count: 2500) }
        let collector = try Worker(store: path.string, mode: "collect", seed: 0, count: 10)
        for worker in workers + [collector] { #expect(worker.finish().last == "OK") }
        try expectClean(path)
    }

    @Test func killedProcessesLoseNothingDurable() throws {
        let seed = UInt64(ProcessInfo.processInfo.environment["LARDER_SEED"] ?? "") ?? UInt64.random(in: 0..<1_000_000)
        let cycles = Int(ProcessInfo.processInfo.environment["LARDER_KILLS"] ?? "") ?? 8
        print("killedProcessesLoseNothingDurable: LARDER_SEED=\(seed) LARDER_KILLS=\(cycles)")
        var generator = SeededGenerator(seed: seed)
        let path = temporaryStorePath()
        defer { removeTree(path) }
        try Store(at: path, Configuration(budget: Budget(bytes: .mebibytes(32)))).close()
        var promised: [String: String] = [:]
        for cycle in 0..<cycles {
            let mixed = try Worker(
                store: path.string, mode: "mixed", seed: generator.next() % 1_000_000, count: 1_000_000)
            let durable = try Worker(
                store: path.string, mode: "durable", seed: UInt64(cycle) + 1, count: 1_000_000)
            mixed.waitUntilReady()
            durable.waitUntilReady()
            // A kill at any moment is right, and on a busy machine it is another one.
            usleep(UInt32.random(in: 1_000...150_000, using: &generator))
            mixed.kill()
            durable.kill()
            #expect(!mixed.finish().contains { $0.hasPrefix("BAD") })
            for line in durable.finish() {
                let words = line.split(separator: " ").map(String.init)
                if words.count == 3, words[0] == "D", words[2].utf8.count == 64 { promised[words[1]] = words[2] }
                #expect(!line.hasPrefix("BAD"), "\(line)")
            }
            try expectClean(path)
            let store = try Store(at: path)
            // `mixed` clears the store now and then, which a durable put does not outlive.
            let kept = try promised.filter { try store.contains(Key($0.key)) }
            for (key, digest) in kept {
                let entry = try #require(try store.get(Key(key)))
                #expect(try Digest.of(entry.body.bytes()).hexadecimal == digest)
            }
            try store.remove(.host("durable.test"))
            try store.close()
            promised = [:]
        }
    }

    @Test func durableEntriesSurviveTheKill() throws {
        let path = temporaryStorePath()
        defer { removeTree(path) }
        try Store(at: path).close()
        for cycle in 1...4 as ClosedRange<UInt64> {
            let worker = try Worker(store: path.string, mode: "durable", seed: cycle, count: 1_000_000)
            worker.waitUntilReady()
            // Any moment is right: what it said before the kill counts.
            usleep(40_000)
            worker.kill()
            let lines = worker.finish().filter { $0.hasPrefix("D ") }
            let store = try Store(at: path)
            for line in lines {
                let words = line.split(separator: " ").map(String.init)
                guard words.count == 3, words[2].utf8.count == 64 else { continue }
                let entry = try #require(try store.get(Key(words[1])), "lost \(words[1])")
                #expect(try Digest.of(entry.body.bytes()).hexadecimal == words[2])
            }
            try store.close()
            try expectClean(path)
        }
    }

    private func expectClean(_ path: FilePath) throws {
        let store = try Store(at: path)
        let report = try store.check()
        #expect(report.violations.map(\.description) == [])
        #expect(try store.statistics().allocatedBytes.bytes == recount(path))
        try store.close()
    }

    /// A batch is there whole or not at all. Once its commit was reported, it is there.
    @Test func aKilledProcessLeavesWholeBatches() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            for round in 0..<9 {
                let worker = try Worker(store: path.string, mode: "batches", seed: 0, count: 0)
                worker.waitUntilReady()
                for number in 0...round { worker.waitForLine("B \(number)") }
                worker.kill()
                _ = worker.finish()
                let store = try Store(at: path, .testing())
                let found = try (0..<8).map { try store.get(Key("k\($0)"))?.body.bytes().first }
                #expect(Set(found).count == 1, "\(found)")
                // Of this worker or, killed in its first rounds, of the last: never nothing.
                #expect(found[0].map { Int($0) >= round } ?? false, "\(found)")
                #expect(store.stagedFiles == [])
                try finish(store)
            }
        }
    }

    /// What was used and committed before a kill is displaced last, and the killed process's session is over.
    @Test func aKillKeepsTheOrderOfUseAndEndsTheSession() throws {
        try withDirectory { path in
            let worker = try Worker(store: path.string, mode: "used", seed: 0, count: 0)
            worker.waitUntilReady()
            worker.waitForLine("USED")
            worker.kill()
            _ = worker.finish()
            let store = try Store(at: path, .testing())
            try #expect(store.keys() == ["a", "b", "c"])
            try store.setBudget(Budget(entries: 2))
            try #expect(store.keys() == ["a", "c"])
            try finish(store)
        }
    }

    /// `tools/torture large-body` does the same with 4 GiB.
    @Test(.disabled(if: Sanitizer.isOn)) func memoryDoesNotDependOnTheLengthOfAStreamedBody() throws {
        try withDirectory { path in
            let worker = try Worker(store: path.appending("store").string, mode: "stream", seed: 0, count: 256)
            let lines = worker.finish()
            #expect(lines.last == "OK", "\(lines)")
        }
    }
}
