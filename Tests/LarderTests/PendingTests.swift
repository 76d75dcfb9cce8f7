import TestSupport
import Testing

@testable import Larder

/// What was put or removed is seen at once, before the index has it.
@Suite struct PendingTests {
    private let holding = Configuration.holding

    @Test func everyLookupSeesWhatIsPending() throws {
        try withStore(configuration: holding) { store in
            try store.put(body(100), for: "small", PutOptions(metadata: [1]))
            try store.put(body(9000), for: "large")
            #expect(store.engine.writing?.pending.completedGeneration == 0)
            try #expect(store.contains("small") == true)
            try #expect(store.bytes("large") == body(9000))
            try #expect(store.get("small")?.metadata == [1])
            try #expect(store.withBody(of: "small") { $0.byteCount } == 100)
            #expect(store["small"] == body(100))
            #expect(store.engine.writing?.pending.completedGeneration == 0)
        }
    }

    @Test func everyOtherCallCommitsFirst() throws {
        let calls: [(String, (Store) throws -> Void)] = [
            ("keys", { try #expect($0.keys() == ["k"]) }),
            ("attributes", { try #expect($0.attributes(of: "k") != nil) }),
            ("statistics", { try #expect($0.statistics().entryCount == 1) }),
            ("pin", { try #expect($0.pin("k") == true) }), ("touch", { try #expect($0.touch("k") == true) }),
            ("tag", { try #expect($0.pin(tag: "t") == 1) }), ("remove", { try #expect($0.remove(.all) == 1) }),
            ("clear", { try #expect($0.clear() == 1) }), ("check", { _ = try $0.check() }),
            ("collect", { try $0.collect() }), ("budget", { try $0.setBudget(Budget(entries: 5)) }),
        ]
        for (name, call) in calls {
            try withStore(configuration: holding) { store in
                try store.put([1], for: "k", PutOptions(tags: ["t"]))
                try call(store)
                #expect(store.engine.writing?.pending.completedGeneration == 1, "\(name)")
            }
        }
    }

    @Test func aPendingRemovalHidesWhatTheIndexHas() throws {
        try withStore(configuration: holding) { store in
            try store.put([1], for: "k")
            try store.flush()
            try store.remove("k")
            try #expect(store.get("k") == nil)
            try #expect(store.contains("k") == false)
            try #expect(store.withBody(of: "k") { _ in 1 } == nil)
            try store.put([2], for: "k")
            try #expect(store.bytes("k") == [2])
            try store.flush()
            try #expect(store.bytes("k") == [2])
        }
    }

    @Test func closeCommitsWhatIsPending() throws {
        try withDirectory { path in
            let store = try Store(at: path, holding)
            for number in 0..<100 { try store.put(body(number * 100, number), for: Key("k\(number)")) }
            try store.remove("k7")
            try store.close()
            let again = try Store(at: path, .testing())
            try #expect(again.statistics().entryCount == 99)
            try #expect(again.bytes("k99") == body(9900, 99))
            try finish(again)
        }
    }

    @Test func hitsOnPendingEntriesCountOnceCommitted() throws {
        try withStore(configuration: holding) { store in
            try store.put([1], for: "k")
            for _ in 0..<5 { _ = try store.get("k") }
            try #expect(store.attributes(of: "k")?.hitCount == 5)
            for _ in 0..<3 { _ = try store.get("k") }
            try #expect(store.attributes(of: "k")?.hitCount == 8)
        }
    }

    @Test func accessTimesAreFlushedWithNothingElsePending() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "k")
            try store.flush()
            clock.advance(by: .seconds(100))
            _ = try store.get("k")
            try store.flush()
            let accessed = try #require(try store.attributes(of: "k")).lastAccess
            #expect(clock.now() - accessed < .seconds(10))
        }
    }

    @Test func aFullBatchDoesNotWaitForItsDelay() throws {
        try withStore(
            configuration: .testing {
                $0.commitDelay = .seconds(3600); $0.pendingLimit = .kibibytes(64)
            }
        ) { store in
            for number in 0..<200 { try store.put(body(2000, number), for: Key("k\(number)")) }
            #expect((store.engine.writing?.pending.completedGeneration ?? 0) > 0)
            for number in 0..<200 { try #expect(store.bytes(Key("k\(number)")) == body(2000, number)) }
        }
    }

    @Test(arguments: [false, true])
    func attributesOfWhatIsPendingStayWithTheCommit(isRemovedBefore: Bool) throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock) { $0.commitDelay = .seconds(3600) }) { store in
            try store.pin(tag: "t")
            try store.put(body(10), for: "k", PutOptions(isPinned: true))
            try store.put(body(10), for: "other")
            try store.flush()
            clock.advance(by: .seconds(100))
            if isRemovedBefore { try store.remove("k") }
            try store.put(body(10), for: "k")
            try store.put(body(10), for: "tagged", PutOptions(tags: ["t"]))
            for key in ["k", "tagged"] as [Key] {
                let before = try #require(try store.get(key)).attributes
                #expect(before.references == nil)
                try store.flush()
                let after = try #require(try store.attributes(of: key))
                #expect(before.created == after.created && before.isPinned == after.isPinned, "\(key)")
                #expect(before.isPinned == (key == "tagged" || !isRemovedBefore))
                #expect(after.references == 3)
                let committed = try #require(try store.get(key)).attributes
                #expect(committed.references == nil && committed.created == after.created)
            }
        }
    }
}
