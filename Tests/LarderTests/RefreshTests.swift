import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Stale values that are computed again in the background.
@Suite struct RefreshTests {
    private struct Failure: Error {}

    private static let lifetime = PutOptions(lifetime: .duration(.seconds(10)))
    private static let options = ReadThroughOptions(staleFor: .seconds(60))

    /// Another process computes the value meanwhile: it is not computed again.
    @Test func processesRefreshAValueOnce() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let options = ReadThroughOptions(others: .wait(.seconds(600)), staleFor: .seconds(3600))
            let calls = Counter()
            var isStale = false
            // On a busy machine the other process may be done before this one looks: then it takes longer the next
            // time.
            for seconds in [1, 4, 16, 64] where !isStale {
                try await store.put([1], for: "k", PutOptions(lifetime: .duration(.zero)))
                try await store.perform { try $0.flush() }
                let worker = try Worker(store: path.string, mode: "compute", seed: 0, count: seconds * 1000)
                try await waitWhile { try !store.isClaimed("k") && !store.contains("k") }
                let value = try await store.value(for: "k", options) { _ in
                    calls.increment()
                    return Computed([2])
                }
                isStale = try bytes(of: value) == [1]
                try await waitWhile { store.engine.computations.isUnderWay("k") }
                // The worker's.
                try #expect(store.bytes("k")?.count == 1000)
                worker.waitUntilEnd()
            }
            #expect(isStale)
            #expect(calls.value == 0)
            try finish(store)
        }
    }

    @Test func aFailedRefreshIsNotRepeatedAtOnce() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            let calls = Counter()
            _ = try await store.value(for: "k", Self.options) { _ in Computed([1], Self.lifetime) }
            clock.advance(by: .seconds(20))
            func ask(fails: Bool) async throws -> [UInt8]? {
                let entry = try await store.value(for: "k", Self.options) { _ in
                    calls.increment()
                    if fails { throw Failure() }
                    return Computed([2], Self.lifetime)
                }
                try await waitWhile { store.engine.computations.isUnderWay("k") }
                return try bytes(of: entry)
            }
            for _ in 0..<5 {
                let stale = try await ask(fails: true)
                #expect(stale == [1])
            }
            #expect(calls.value == 1)
            clock.advance(by: .seconds(6))
            for _ in 0..<5 { _ = try await ask(fails: true) }
            #expect(calls.value == 2)
            clock.advance(by: .seconds(6))
            _ = try await ask(fails: false)
            let fresh = try await ask(fails: true)
            #expect(fresh == [2])
            #expect(calls.value == 3)
            // One that succeeded needs no pause.
            clock.advance(by: .seconds(20))
            _ = try await ask(fails: true)
            #expect(calls.value == 4)
        }
    }

    /// As any computation, once callers have waited for it.
    @Test func aRefreshEndsWithTheLastCallerThatJoinedIt() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            let (gate, isCancelled) = (Doors(), Counter())
            _ = try await store.value(for: "k", Self.options) { _ in Computed([1], Self.lifetime) }
            clock.advance(by: .seconds(20))
            _ = try await store.value(for: "k", Self.options) { _ in
                await gate.pass()
                if Task.isCancelled { isCancelled.increment() }
                return Computed([2], Self.lifetime)
            }
            try await waitWhile { gate.arrived.value == 0 }
            // Too old to be returned.
            clock.advance(by: .seconds(100))
            let callers = (0..<2).map { _ in
                Task { try await store.value(for: "k", Self.options) { _ in Computed([3], Self.lifetime) } }
            }
            try await waitWhile { store.engine.computations.callers(of: "k") < 2 }
            for caller in callers { caller.cancel() }
            for caller in callers { await #expect(throws: CancellationError.self) { try await caller.value } }
            let next = try await store.value(for: "k", Self.options) { _ in Computed([4], Self.lifetime) }
            try #expect(bytes(of: next) == [4])
            gate.open()
            try await waitWhile { isCancelled.value == 0 }
            try await waitWhile { try store.leases > 0 }
            try #expect(store.bytes("k") == [4])
        }
    }
}

extension Store {
    /// Rows of leases and claims.
    var leases: Int { get throws { try engine.read { try $0.statistics(engine.index.leases).entries } } }
}
