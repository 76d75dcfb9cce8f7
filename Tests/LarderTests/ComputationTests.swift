import Locks
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Computations that wait for each other, that no caller waits for any more, and whose value cannot be stored.
struct ComputationTests {
    // MARK: Cycles

    @Test(arguments: [["a"], ["a", "b"], ["a", "b", "c"]])
    func aComputationThatWaitsForItselfFails(_ keys: [String]) async throws {
        try await withStore { store in
            @Sendable func value(_ depth: Int) async throws -> Entry? {
                let key = Key(keys[depth % keys.count])
                return try await store.value(for: key) { _ in
                    Computed(try await bytes(of: value(depth + 1)) ?? [])
                }
            }
            let failure = try await code { try await value(0) }
            #expect(failure == .invalidArgument)
            // Nothing is left that a later caller would wait for.
            for key in keys {
                let entry = try await store.value(for: Key(key)) { _ in Computed([2]) }
                try #expect(bytes(of: entry) == [2])
            }
        }
    }

    /// Each of two computations joins the other one, which another caller has started.
    @Test func twoComputationsThatWaitForEachOtherFail() async throws {
        try await withStore { store in
            let gate = Doors()
            let tasks = [("a", "b"), ("b", "a")].map { (key: Key, other: Key) in
                Task {
                    try await store.value(for: key) { _ in
                        await gate.pass()
                        // A child of the computation.
                        async let found = store.value(for: other) { _ in Computed([1]) }
                        return Computed(try await bytes(of: found) ?? [])
                    }
                }
            }
            try await waitWhile { gate.arrived.value < 2 }
            gate.open()
            for task in tasks {
                let failure = try await code { try await task.value }
                #expect(failure == .invalidArgument)
            }
        }
    }

    @Test func aComputationMayAskForOtherKeys() async throws {
        try await withStore { store in
            let calls = Counter()
            let entries = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let entry = try await store.value(for: Key("page\(number)")) { _ in
                            let style = try await store.value(for: "style") { _ in
                                calls.increment()
                                return Computed([7])
                            }
                            return Computed(try #require(try bytes(of: style)) + [UInt8(number)])
                        }
                        return try bytes(of: entry)
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(entries == Set((0..<20).map { [7, UInt8($0)] }))
            #expect(calls.value == 1)
        }
    }

    // MARK: Cancelled

    @Test func aComputationThatWasGivenUpStoresNothing() async throws {
        try await withStore { store in
            let gate = Doors()
            let task = Task {
                // It does not look at the cancellation.
                try await store.value(for: "k") { _ in
                    await gate.pass()
                    return Computed([1])
                }
            }
            try await waitWhile { store.engine.computations.callers(of: "k") < 1 || gate.arrived.value == 0 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let next = try await store.value(for: "k") { _ in Computed([2]) }
            try #expect(bytes(of: next) == [2])
            gate.open()
            // Its claim is the last thing that it gives back.
            try await waitWhile { try store.leases > 0 }
            try #expect(store.bytes("k") == [2])
        }
    }

    // MARK: No room

    @Test func aStoreFullOfPinsReturnsTheValue() async throws {
        try await withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(1)))) { store in
            var number = 0
            for length in [20_000, 1000, 10] {
                let pinned = PutOptions(isPinned: true, durability: .durable)
                while try code({ try store.put(body(length, number), for: Key("k\(number)"), pinned) }) == nil {
                    number += 1
                }
            }
            for round in 0..<3 {
                let entry = try await store.value(for: Key("v\(round)")) { _ in Computed(body(3000, round)) }
                try #expect(bytes(of: entry) == body(3000, round))
            }
            _ = try code { try store.flush() }
        }
    }

    #if LARDER_FAILPOINTS
        @Test(arguments: ["MDB_MAP_FULL", "ENOSPC", "EIO", "MDB_CORRUPTED"])
        func aValueIsReturnedWhateverKeepsItFromBeingStored(_ fault: String) async throws {
            try await withDirectory { path in
                let store = try Store(at: path, .testing())
                try await store.put([1], for: "old")
                try await store.perform { try $0.flush() }
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list("mdb_put=\(fault)")))
                let entry = try await store.value(for: "k") { _ in
                    Computed([2], PutOptions(metadata: [3], durability: .durable))
                }
                try #expect(bytes(of: entry) == [2])
                #expect(entry?.metadata == [3])
                #expect(scope.injected > 0)
                scope.lift()
                try? await store.close()
            }
        }
    #endif
}
