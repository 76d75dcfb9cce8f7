import TestSupport
import Testing

@testable import Larder

@Suite struct SelectionTests {
    static let urls: [Key] = [
        "ftp://example.com/f", "http://example.com", "http://example.com/", "http://example.com/a",
        "http://example.com/a/",
        "http://example.com/a?x=1", "http://example.com/a?x=2", "http://example.com/ab", "http://example.com:8080/a",
        "http://example.com?q", "http://example.community/a", "http://example.org/a", "https://example.com/a",
        "https://sub.example.com/a", "mailto:example.com", "s3://example.com/k",
    ]

    @Test(arguments: [
        ("http://example.com/a", 6), ("http://example.com/a/", 1), ("http://example.com/a?", 2),
        ("http://example.com", 10),
        ("https:", 2), ("x", 0), ("", 16),
    ])
    func prefixesSelectByBytes(_ prefix: String, _ count: Int) throws {
        try withStore { store in
            for key in Self.urls { try store.put(Array(key.bytes), for: key) }
            let expected = Self.urls.filter { $0.text.hasPrefix(prefix) }
            if prefix != "http://example.com/a" { #expect(expected.count == count) }
            try #expect(store.keys(.prefix(Key(prefix))) == expected)
            try #expect(store.remove(.prefix(Key(prefix))) == expected.count)
            try #expect(store.keys() == Self.urls.filter { !expected.contains($0) })
        }
    }

    @Test(arguments: ["example.com", "EXAMPLE.com"])
    func hostsSelectAnySchemeAndPortButNoOtherHost(_ host: String) throws {
        try withStore { store in
            for key in Self.urls { try store.put(Array(key.bytes), for: key) }
            let others: [Key] = [
                "http://example.community/a", "http://example.org/a", "https://sub.example.com/a", "mailto:example.com",
            ]
            let expected = Self.urls.filter { !others.contains($0) }
            try #expect(Set(store.keys(.host(host))) == Set(expected))
            try #expect(store.remove(.host(host)) == expected.count)
            try #expect(store.keys() == others)
        }
    }

    @Test(arguments: [StoragePolicy.permanent, .memoryOnly])
    func whetherARemovalMayFindAnyIsSeenWithoutACommit(_ policy: StoragePolicy) throws {
        var configuration = Configuration.testing()
        configuration.commitDelay = .seconds(1)
        try withStore(configuration: configuration) { store in
            let other: Selection = .prefix("a ") && !.prefix("a search=")
            try store.put([1], for: "a")
            for number in 0..<3 { try store.put([1], for: Key("a search=\(number)")) }
            try store.flush()
            try #expect(!store.mayHave(other, prefix: "a "))
            // Pending, then in the index, then removed.
            try store.put([2], for: "a x", PutOptions(storagePolicy: policy))
            try #expect(store.mayHave(other, prefix: "a "))
            try #expect(!store.mayHave(.prefix("b "), prefix: "b "))
            try store.flush()
            try #expect(store.mayHave(other, prefix: "a "))
            try #expect(store.remove(other) == 1)
            try #expect(!store.mayHave(other, prefix: "a "))
            // More keys than it looks at: it may.
            for number in 3..<100 { try store.put([1], for: Key("a search=\(number)")) }
            try store.flush()
            try #expect(store.mayHave(other, prefix: "a "))
        }
    }

    @Test func aPrefixDoesNotScanTheStore() throws {
        try withStore { store in
            for number in 0..<2000 { try store.put([1], for: Key("a\(number)")) }
            for number in 0..<10 { try store.put([1], for: Key("b\(number)")) }
            try store.flush()
            var examined = 0
            try #expect(store.remove(.prefix("b")) { examined = $0.examined } == 10)
            #expect(examined == 10)
            try #expect(store.statistics().entryCount == 2000)
        }
    }

    @Test func tagsSelectExactly() throws {
        try withStore { store in
            try store.put([1], for: "a", PutOptions(tags: ["t", "u"]))
            try store.put([2], for: "b", PutOptions(tags: ["t1"]))
            try store.put([3], for: "c", PutOptions(tags: ["t"]))
            try store.put([4], for: "d")
            try store.put([5], for: "e", PutOptions(tags: ["ж"]))
            try #expect(store.keys(.tag("t")) == ["a", "c"])
            try #expect(store.keys(.tag("t1")) == ["b"])
            try #expect(store.keys(.tag("ж")) == ["e"])
            try #expect(store.keys(.tag("")) == [])
            // Overwriting replaces the tags.
            try store.put([1], for: "a", PutOptions(tags: ["v"]))
            try #expect(store.keys(.tag("t")) == ["c"])
            try #expect(store.keys(.tag("u")) == [])
            try #expect(store.remove(.tag("v")) == 1)
            try #expect(store.remove(.tag("t")) == 1)
            try #expect(store.keys() == ["b", "d", "e"])
        }
    }

    @Test func aTagGivenTwiceCountsOnce() throws {
        try withStore { store in
            try store.put([1], for: "a", PutOptions(tags: ["t", "t"]))
            try #expect(store.keys(.tag("t")) == ["a"])
            try #expect(store.remove(.tag("t")) == 1)
        }
    }

    @Test func timesSelectByPutAndByUse() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            var moments: [Timestamp] = []
            for number in 0..<5 {
                moments.append(clock.now())
                try store.put([UInt8(number)], for: Key("k\(number)"))
                clock.advance(by: .seconds(10))
            }
            try store.flush()
            try #expect(store.keys(.storedSince(moments[3])) == ["k3", "k4"])
            try #expect(store.keys(.storedBefore(moments[3])) == ["k0", "k1", "k2"])
            _ = try store.get("k1")
            try store.touch("k2")
            try #expect(store.keys(.unusedSince(clock.now() - .seconds(5))) == ["k0", "k3", "k4"])
            try #expect(store.remove(.unusedSince(moments[4])) == 2)
            try #expect(store.remove(.storedSince(moments[4])) == 1)
            try #expect(store.remove(.storedBefore(moments[2])) == 1)
            try #expect(store.keys() == ["k2"])
        }
    }

    @Test func allButSomeAreRemoved() throws {
        try withStore { store in
            for number in 0..<20 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.put([1], for: Key(bytes: body(1000)))
            try #expect(store.remove(!.keys(["k3", "k7", Key(bytes: body(1000)), "none"])) == 18)
            try #expect(Set(store.keys()) == ["k3", "k7", Key(bytes: body(1000))])
        }
    }

    @Test func listingsAreCompleteAndInOrderAcrossBatches() throws {
        try withStore { store in
            let keys = (0..<700).map { Key("key-\(1000 + $0)") }
            for key in keys.shuffled() { try store.put([1], for: key) }
            try #expect(store.keys() == keys)
            var seen: [Key] = []
            try store.forEach { seen.append($0.key) }
            #expect(seen == keys)
        }
    }

    @Test func aListingStopsWhenItsBodyThrows() throws {
        struct Stop: Error {}
        try withStore { store in
            for number in 0..<10 { try store.put([1], for: Key("k\(number)")) }
            var count = 0
            #expect(throws: Stop.self) {
                try store.forEach { _ in
                    count += 1
                    if count == 3 { throw Stop() }
                }
            }
            #expect(count == 3)
        }
    }

    // MARK: Progress and cancellation

    @Test func progressGrowsAndAThrowFromItStops() throws {
        struct Stop: Error {}
        try withStore { store in
            for number in 0..<600 { try store.put([1], for: Key("k\(1000 + number)")) }
            try store.flush()
            var steps: [RemovalProgress] = []
            #expect(throws: Stop.self) {
                try store.remove(.all) { step in
                    steps.append(step)
                    if steps.count == 2 { throw Stop() }
                }
            }
            #expect(steps.map(\.removed) == [256, 512])
            #expect(steps.map(\.examined) == [256, 512])
            #expect(steps.allSatisfy { $0.total == 600 })
            try #expect(store.statistics().entryCount == 88)
            try #expect(store.remove(.all) == 88)
        }
    }

    @Test func cancellingTheTaskStopsARemoval() async throws {
        try await withStore { store in
            for number in 0..<600 { try await store.put([1], for: Key("k\(number)")) }
            let task = Task {
                await untilCancelled()
                _ = try await store.remove(.all)
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let left = try await store.perform { try $0.statistics().entryCount }
            #expect(left > 0)
            let removed: Int = try await store.remove(.all)
            #expect(removed == left)
        }
    }

    @Test func entriesCanBeIteratedAsynchronously() async throws {
        try await withStore { store in
            for number in 0..<600 { try await store.put([1], for: Key("k\(1000 + number)")) }
            var keys: [Key] = []
            for try await attributes in try store.entries(.prefix("k12")) { keys.append(attributes.key) }
            #expect(keys == (1200..<1300).map { Key("k\($0)") })
        }
    }
}
