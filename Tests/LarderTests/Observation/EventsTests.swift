import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A stream has the events of a store in their order, never makes the store wait, and ends with it.
@Suite struct EventsTests {
    /// Events in words, without their numbers where those may differ.
    private func text(_ event: StoreEvent) -> String {
        switch event {
        case .stored(let key, let length): "stored \(key.text) \(length.bytes)"
        case .removed(let key): "removed \(key.text)"
        case .cleared(let count): "cleared \(count)"
        case .displaced(let key, _, let reason): "displaced \(key.text) \(reason)"
        case .damaged: "damaged"
        case .checkpointed(let files): "checkpointed \(files)"
        case .commitFailed: "commitFailed"
        case .failing(let work, _): "failing \(work)"
        case .recovered(let work): "recovered \(work)"
        case .missed(let count): "missed \(count)"
        default: "other"
        }
    }

    /// Everything that is left of a closed store's events.
    private func rest(_ events: some AsyncSequence<StoreEvent, Never>) async -> [String] {
        var found: [String] = []
        for await event in events { found.append(text(event)) }
        return found
    }

    @Test func whatCallsDoIsTold() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            try await store.put([9], for: "before")
            let events = store.events()
            try await store.put(body(100), for: "a")
            try await store.put(body(9000), for: "b", PutOptions(durability: .durable))
            try await store.put(body(7), for: "m", PutOptions(storagePolicy: .memoryOnly))
            #expect(try await store.remove("a"))
            #expect(try await !store.remove("none"))
            #expect(try await store.remove(.keys(["b", "none", "m"])) == 2)
            var batch = WriteBatch()
            batch.put([1, 2], for: "c")
            batch.remove("before")
            batch.remove("none")
            try await store.write(batch)
            try await store.perform { try $0.clear() }
            try finish(store)
            // The close makes a checkpoint.
            #expect(
                await rest(events).filter { !$0.hasPrefix("checkpointed") } == [
                    "stored a 100", "stored b 9000", "stored m 7", "removed a", "removed m", "removed b", "stored c 2",
                    "removed before", "cleared 1",
                ])
        }
    }

    @Test func whatTheStoreDoesIsTold() async throws {
        let clock = TestClock()
        try await withDirectory { path in
            let budget = Budget(bytes: .unlimited, entries: 2)
            let store = try Store(at: path, .testing(budget: budget, clock: clock))
            let events = store.events()
            try await store.put([1], for: "old", PutOptions(lifetime: .duration(.seconds(1)), durability: .durable))
            try await store.put([2], for: "a", PutOptions(durability: .durable))
            clock.advance(by: .seconds(2))
            try await store.put([3], for: "b", PutOptions(durability: .durable))
            try await store.put(body(9000), for: "c", PutOptions(durability: .durable))
            try await store.perform { try $0.flush(.durable) }
            let digest = Digest.of(body(9000))
            #expect(unlink(store.blobPath(digest).string) == 0)
            #expect(try await store.get("c") == nil)
            try await store.perform { try $0.clear() }
            try await store.close()
            let found = await rest(events).filter { !$0.hasPrefix("stored") && !$0.hasPrefix("cleared") }
            #expect(
                found.filter { $0 != "checkpointed 0" } == [
                    "displaced old expired", "displaced a leastRecentlyUsed", "checkpointed 1", "damaged",
                ])
            try await Store(at: path, .testing()).close()
        }
    }

    // MARK: Readers

    @Test func aSlowReaderMissesTheOldestAndHearsHowMany() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let events = store.events(buffering: 3)
            for number in 0..<10 { try await store.put([1], for: Key("k\(number)")) }
            var iterator = events.makeAsyncIterator()
            #expect(await iterator.next(isolation: nil).map(text) == "missed 7")
            #expect(await iterator.next(isolation: nil).map(text) == "stored k7 1")
            // Room for one more.
            try await store.put([1], for: "k10")
            #expect(await iterator.next(isolation: nil).map(text) == "stored k8 1")
            #expect(await iterator.next(isolation: nil).map(text) == "stored k9 1")
            try await store.put([1], for: "k11")
            try finish(store)
            #expect(await rest(events) == ["stored k10 1", "stored k11 1"])
            #expect(await iterator.next(isolation: nil) == nil)
        }
    }

    /// Whatever the order of adding and taking: nothing is lost that is not counted as missed.
    @Test(arguments: [1, 2, 3, 64, 100, 1000])
    func everyEventIsReadOrMissed(_ capacity: Int) async {
        let buffer = EventBuffer(handle: 1, capacity: capacity)
        var generator = SeededGenerator(seed: UInt64(capacity))
        var (added, expected) = (0, 0)
        for _ in 0..<2000 {
            for _ in 0..<Int.random(in: 0...6, using: &generator) {
                buffer.add(.rowsRemoved(count: added))
                added += 1
            }
            for _ in 0..<Int.random(in: 0...6, using: &generator) where expected < added {
                switch await buffer.next() {
                case .missed(let count): expected += count
                case .rowsRemoved(let number):
                    #expect(number == expected)
                    expected += 1
                default: Issue.record("an event that was not added")
                }
            }
        }
        buffer.end()
        while let event = await buffer.next() {
            if case .missed(let count) = event { expected += count } else { expected += 1 }
        }
        #expect(expected == added)
    }

    @Test func aReaderThatWaitsGetsTheNextEvent() async throws {
        try await withStore { store in
            let events = store.events()
            async let first = { () -> StoreEvent? in
                var iterator = events.makeAsyncIterator()
                return await iterator.next(isolation: nil)
            }()
            try await store.put([1], for: "k")
            #expect(await first.map(text) == "stored k 1")
        }
    }

    @Test func everyReaderHasAllEvents() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let (first, second) = (store.events(), store.events())
            try await store.put([1], for: "a")
            let third = store.events()
            try await store.put([1], for: "b")
            try finish(store)
            #expect(await rest(first) == ["stored a 1", "stored b 1"])
            #expect(await rest(second) == ["stored a 1", "stored b 1"])
            #expect(await rest(third) == ["stored b 1"])
        }
    }

    @Test func aCancelledReaderEnds() async throws {
        try await withStore { store in
            let events = store.events()
            let reader = Task {
                var count = 0
                for await _ in events { count += 1 }
                return count
            }
            reader.cancel()
            #expect(await reader.value == 0)
            // Another one gets what follows.
            try await store.put([1], for: "k")
            var iterator = events.makeAsyncIterator()
            #expect(await iterator.next(isolation: nil).map(text) == "stored k 1")
        }
    }

    @Test func closingOneOfTwoStoresEndsItsEventsOnly() async throws {
        try await withDirectory { path in
            let (first, second) = (try Store(at: path, .testing()), try Store(at: path, .testing()))
            let (ofFirst, ofSecond) = (first.events(), second.events())
            try await first.put([1], for: "a")
            try await first.close()
            #expect(await rest(ofFirst) == ["stored a 1"])
            try await second.put([1], for: "b")
            try finish(second)
            #expect(await rest(ofSecond) == ["stored a 1", "stored b 1"])
            #expect(await rest(second.events()) == [])
        }
    }

    @Test func withoutAReaderNothingIsKept() throws {
        try withStore { store in
            do {
                let events = store.events()
                #expect(store.engine.audience.hasReaders)
                _ = events.makeAsyncIterator()
            }
            #expect(!store.engine.audience.hasReaders)
            #expect(!store.engine.audience.isObserved)
        }
    }

    @Test func observersHearOnlyOfWhatTheStoreDoes() throws {
        let told = Mutex<[String]>([])
        let budget = Budget(bytes: .unlimited, entries: 1)
        try withStore(
            configuration: .testing(budget: budget) { configuration in
                configuration.observer = { event in told.withLock { $0.append("\(event)") } }
            }
        ) { store in
            try store.put([1], for: "a", PutOptions(durability: .durable))
            try store.put([1], for: "b", PutOptions(durability: .durable))
            try store.remove("b")
            #expect(told.withLock { $0.count } == 1)
        }
    }

    @Test func eventsOfManyThreadsAreAllTold() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let events = store.events(buffering: 10_000)
            await withTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for number in 0..<200 {
                            _ = try? await store.put([1], for: Key("\(task).\(number)"))
                            _ = try? await store.remove(Key("\(task).\(number)"))
                        }
                    }
                }
            }
            try finish(store)
            let found = await rest(events)
            #expect(found.count == 3200)
            // Those of one key in the order of the calls.
            var seen: Set<String> = []
            for event in found {
                let words = event.split(separator: " ")
                let key = String(words[1])
                if words[0] == "removed" { #expect(seen.contains(key)) } else { seen.insert(key) }
            }
        }
    }
}
