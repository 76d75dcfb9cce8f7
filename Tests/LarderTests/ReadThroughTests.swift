import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Lets what comes wait until it is opened, and counts it.
final class Doors: Sendable {
    private let latch = Latch()
    let arrived = Counter()

    func pass() async {
        arrived.increment()
        await latch.wait()
    }

    func open() { latch.open() }
}

private struct Failure: Error {}

@Suite struct ReadThroughTests {
    private func bytes(_ entry: Entry?) throws -> [UInt8]? { try entry?.body.bytes() }

    @Test(arguments: [10, 100_000])
    func aMissIsComputedAndStoredOnce(length: Int) async throws {
        try await withStore { store in
            let calls = Counter()
            for _ in 0..<3 {
                let entry = try await store.value(for: "k") { key in
                    calls.increment()
                    return Computed(body(length), PutOptions(metadata: Array(key.bytes)))
                }
                try #expect(bytes(entry) == body(length))
                #expect(entry?.metadata == Array("k".utf8))
            }
            #expect(calls.value == 1)
            try #expect(store.bytes("k") == body(length))
        }
    }

    @Test func aValueIsComputedInAnyFormOfBytes() async throws {
        try await withStore { store in
            let bytes = body(100, 1)
            let forms: [(Key, @Sendable () -> Computed)] = [
                ("slice", { Computed(([9] + bytes)[1...]) }), ("lazy", { Computed(bytes.lazy.map { $0 }) }),
                ("span", { bytes.withUnsafeBytes { Computed($0.bytes) } }),
            ]
            for (key, form) in forms {
                try await #expect(self.bytes(store.value(for: key) { _ in form() }) == bytes, "\(key)")
            }
            try await #expect(self.bytes(store.value(for: "text") { _ in Computed("abc".utf8) }) == Array("abc".utf8))
        }
    }

    @Test func manyCallersShareOneComputation() async throws {
        try await withStore { store in
            let calls = Counter()
            let gate = Doors()
            try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let entry = try await store.value(for: "k") { _ in
                            calls.increment()
                            await gate.pass()
                            return Computed([7])
                        }
                        return try bytes(entry)
                    }
                }
                try await waitWhile { store.engine.computations.callers(of: "k") < 50 }
                gate.open()
                for try await bytes in group { #expect(bytes == [7]) }
            }
            #expect(calls.value == 1)
            #expect(store.engine.computations.callers(of: "k") == 0)
        }
    }

    @Test func anErrorReachesAllAndIsNotStored() async throws {
        try await withStore { store in
            let gate = Doors()
            let first = Task {
                try await store.value(for: "k") { _ in
                    await gate.pass(); throw Failure()
                }
            }
            // Otherwise the second may compute first, and no one waits for anyone.
            try await waitWhile { store.engine.computations.callers(of: "k") < 1 }
            let second = Task { try await store.value(for: "k") { _ in Computed([1]) } }
            try await waitWhile { store.engine.computations.callers(of: "k") < 2 }
            gate.open()
            await #expect(throws: Failure.self) { try await first.value }
            await #expect(throws: Failure.self) { try await second.value }
            let third = try await store.value(for: "k") { _ in Computed([2]) }
            try #expect(bytes(third) == [2])
            // No claim is left.
            try #expect(store.engine.read { try $0.statistics(store.engine.index.leases).entries } == 0)
        }
    }

    @Test func aCancelledCallerLeavesTheOthersAlone() async throws {
        try await withStore { store in
            let gate = Doors()
            let tasks = (0..<3).map { _ in
                Task {
                    try await store.value(for: "k") { _ in
                        await gate.pass(); return Computed([1])
                    }
                }
            }
            try await waitWhile { store.engine.computations.callers(of: "k") < 3 }
            tasks[0].cancel()
            await #expect(throws: CancellationError.self) { try await tasks[0].value }
            gate.open()
            for task in tasks[1...] {
                let entry = try await task.value
                try #expect(bytes(entry) == [1])
            }
        }
    }

    @Test func theLastCallerTakesTheComputationWithIt() async throws {
        try await withStore { store in
            let gate = Doors()
            let isCancelled = Counter()
            let tasks = (0..<2).map { _ in
                Task {
                    try await store.value(for: "k") { _ in
                        await gate.pass()
                        if Task.isCancelled { isCancelled.increment() }
                        try Task.checkCancellation()
                        return Computed([1])
                    }
                }
            }
            try await waitWhile { store.engine.computations.callers(of: "k") < 2 || gate.arrived.value == 0 }
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            // Another caller does not wait for what was cancelled.
            let next = try await store.value(for: "k", ReadThroughOptions(others: .compute)) { _ in Computed([2]) }
            try #expect(bytes(next) == [2])
            gate.open()
            try await waitWhile { isCancelled.value == 0 }
            try #expect(store.bytes("k") == [2])
        }
    }

    @Test func nothingIsRememberedForItsTime() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            let calls = Counter()
            func ask() async throws -> Entry? {
                try await store.value(for: "k") { _ in
                    calls.increment()
                    return .nothing(for: .seconds(10))
                }
            }
            for _ in 0..<3 {
                let found = try await ask()
                #expect(found == nil)
            }
            #expect(calls.value == 1)
            try await #expect(store.listed(.tag(Computed.nothingTag)) == ["k"])
            clock.advance(by: .seconds(11))
            _ = try await ask()
            #expect(calls.value == 2)
        }
    }

    @Test func aStaleValueIsReturnedWhileItIsRefreshedOnce() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            let lifetime = PutOptions(lifetime: .duration(.seconds(10)))
            let options = ReadThroughOptions(staleFor: .seconds(60))
            let calls = Counter()
            let gate = Doors()
            _ = try await store.value(for: "k", options) { _ in Computed([1], lifetime) }
            clock.advance(by: .seconds(20))
            for _ in 0..<5 {
                let stale = try await store.value(for: "k", options) { _ in
                    calls.increment()
                    await gate.pass()
                    return Computed([2], lifetime)
                }
                try #expect(bytes(stale) == [1])
            }
            gate.open()
            try await waitWhile { store.engine.computations.isUnderWay("k") }
            try #expect(store.bytes("k") == [2])
            #expect(calls.value == 1)
            // Too old for that.
            clock.advance(by: .seconds(100))
            let fresh = try await store.value(for: "k", options) { _ in Computed([3], lifetime) }
            try #expect(bytes(fresh) == [3])
        }
    }

    @Test func aValueThatCannotBeStoredIsReturned() async throws {
        try await withStore(configuration: .testing(budget: Budget(largestEntry: 100))) { store in
            let entry = try await store.value(for: "k") { _ in Computed(body(5000), PutOptions(metadata: [1])) }
            try #expect(bytes(entry) == body(5000))
            #expect(entry?.metadata == [1])
            try #expect(!store.contains("k"))
        }
    }

    @Test func versionsHaveValuesOfTheirOwn() async throws {
        try await withDirectory { path in
            let one = try Store(at: path, .testing { $0.version = "1" })
            let two = try Store(at: path, .testing { $0.version = "2" })
            let gate = Doors()
            async let first = one.value(for: "k") { _ in
                await gate.pass(); return Computed([1])
            }
            async let second = two.value(for: "k") { _ in
                await gate.pass(); return Computed([2])
            }
            try await waitWhile { gate.arrived.value < 2 }
            gate.open()
            let found = try await [first, second]
            try #expect(found.map { try bytes($0) } == [[1], [2]])
            try await one.close()
            try finish(two)
        }
    }

    @Test func closedAndReadOnlyStores() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            try await store.put([1], for: "k")
            try await store.close()
            await #expect(throws: LarderError.self) { try await store.value(for: "k") { _ in Computed([1]) } }
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            let found = try await reader.value(for: "k") { _ in Computed([2]) }
            try #expect(bytes(found) == [1])
            let code = try await code { try await reader.value(for: "none") { _ in Computed([2]) } }
            #expect(code == .readOnly)
            try await reader.close()
        }
    }

    // MARK: Several processes

    @Test func processesShareOneComputation() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            let workers = try (0..<4).map { number in
                try Worker(store: path.string, mode: "compute", seed: UInt64(number), count: 30)
            }
            let lines = workers.flatMap { $0.finish() }
            #expect(lines.filter { $0 == "COMPUTED" }.count == 1, "\(lines)")
            #expect(lines.filter { $0 == "VALUE 1000" }.count == 4, "\(lines)")
            try finish(Store(at: path, .testing()))
        }
    }

    @Test func theClaimOfADeadProcessIsWorthNothing() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let worker = try Worker(store: path.string, mode: "claim", seed: 0, count: 0)
            worker.waitUntilReady()
            worker.waitForLine("COMPUTING")
            // While it lives another process that must not wait computes for itself.
            let own = try await store.value(for: "other", ReadThroughOptions(others: .compute)) { _ in Computed([1]) }
            try #expect(bytes(own) == [1])
            try #expect(store.isClaimed("k"))
            worker.kill()
            _ = worker.finish()
            let entry = try await store.value(for: "k", ReadThroughOptions(others: .wait(.seconds(600)))) { _ in
                Computed([2])
            }
            try #expect(bytes(entry) == [2])
            try finish(store)
        }
    }
}
