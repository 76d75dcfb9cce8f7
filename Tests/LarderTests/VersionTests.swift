import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Entries of another application version are misses and are reclaimed.
@Suite struct VersionTests {
    private func open(_ path: FilePath, _ version: String?) throws -> Store {
        try Store(at: path, .testing { $0.version = version })
    }

    @Test func entriesOfAnotherVersionAreMisses() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            let new = try open(path, "2.0")
            let any = try open(path, nil)
            try old.put([1], for: "k")
            for flushes in [false, true] {
                if flushes { try old.flush() }
                try #expect(old.bytes("k") == [1])
                try #expect(new.get("k") == nil)
                try #expect(new.contains("k") == false)
                try #expect(new.withBody(of: "k") { _ in 1 } == nil)
                try #expect(any.bytes("k") == [1])
            }
            try new.put([2], for: "k")
            try #expect(new.bytes("k") == [2])
            try #expect(old.get("k") == nil)
            try #expect(any.attributes(of: "k")?.version?.number == 2)
            try old.close()
            try new.close()
            try finish(any)
        }
    }

    @Test func versionsKeepTheirNumbers() throws {
        try withDirectory { path in
            for (version, number) in [("a", 1), ("b", 2), ("a", 1), ("c", 3)] {
                let store = try open(path, version)
                try store.put([1], for: Key(version))
                try #expect(store.attributes(of: Key(version))?.version?.number == number)
                try finish(store)
            }
        }
    }

    @Test func entriesOfOtherVersionsAreReclaimed() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            for number in 0..<300 { try old.put([UInt8(number % 256)], for: Key("k\(number)")) }
            try old.close()
            let new = try open(path, "2.0")
            try new.put([1], for: "new")
            // Opening does the same in the background; either way nothing old is left.
            try new.engine.requireWriting().removals.removeEntries(ofOtherVersionsThan: #require(new.version))
            try new.collect()
            try #expect(new.keys() == ["new"])
            try finish(new)
        }
    }

    @Test func aStoreWithoutAVersionReclaimsNothing() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            try old.put([1], for: "k")
            try old.close()
            let any = try open(path, nil)
            try any.collect()
            try #expect(any.bytes("k") == [1])
            try #expect(any.remove(.otherVersions) == 0)
            try finish(any)
        }
    }

    @Test func aReadOnlyStoreOfAnUnknownVersionSeesNothing() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            try old.put([1], for: "k")
            try old.close()
            let reader = try Store(
                at: path,
                .testing {
                    $0.version = "9.9"
                    $0.isReadOnly = true
                })
            try #expect(reader.get("k") == nil)
            try reader.close()
        }
    }

    // MARK: One rule for every call

    /// Two stores of a path with a version each, and one without, which sees all.
    private func withVersions(_ body: (Store, Store, Store) throws -> Void) throws {
        try withDirectory { path in
            let (old, new, any) = try (open(path, "1.0"), open(path, "2.0"), open(path, nil))
            try body(old, new, any)
            try old.close()
            try new.close()
            try finish(any)
        }
    }

    @Test func listingsHaveWhatLookupsFind() throws {
        try withVersions { old, new, any in
            for policy in [StoragePolicy.permanent, .memoryOnly] {
                try old.put([1], for: Key("o\(policy)"), PutOptions(storagePolicy: policy, tags: ["t"]))
                try new.put([2], for: Key("n\(policy)"), PutOptions(storagePolicy: policy, tags: ["t"]))
            }
            let (olds, news): (Set<Key>, Set<Key>) = (
                ["opermanent", "omemoryOnly"], ["npermanent", "nmemoryOnly"]
            )
            for selection in [Selection.all, .tag("t"), .storedBefore(.distantFuture), !.keys([])] {
                try #expect(Set(old.keys(selection)) == olds)
                try #expect(Set(new.keys(selection)) == news)
                try #expect(Set(any.keys(selection)) == olds.union(news))
            }
            try #expect(Set(new.keys(.otherVersions)) == olds)
            try #expect(Set(old.keys(.otherVersions)) == news)
            try #expect(any.keys(.otherVersions) == [])
            try #expect(new.attributes(of: "opermanent") == nil)
            try #expect(any.attributes(of: "opermanent")?.version == old.applicationVersion)
            try #expect(any.applicationVersions() == ["1.0": old.applicationVersion, "2.0": new.applicationVersion])
        }
    }

    @Test(arguments: [StoragePolicy.permanent, .memoryOnly], [false, true])
    func whatAnotherVersionPutIsLeftAlone(policy: StoragePolicy, isCommitted: Bool) throws {
        try withVersions { old, new, any in
            try old.put([1], for: "k", PutOptions(storagePolicy: policy, tags: ["t"]))
            if isCommitted { try old.flush() }
            let entry = try #require(try any.get("k"))
            try #expect(new.remove("k") == false)
            try #expect(new.remove("k", durability: .durable) == false)
            try #expect(new.touch("k", lifetime: .duration(.seconds(1))) == false)
            try #expect(new.pin("k") == false)
            try #expect(new.unpin("k") == false)
            try #expect(new.update(entry, metadata: [9]) == false)
            try #expect(new.remove(entry) == false)
            try #expect(new.remove(.all) == 0)
            try #expect(new.remove(.tag("t")) == 0)
            try #expect(new.pin(tag: "t") == 0)
            try #expect(new.unpin(tag: "t") == 0)
            try #expect(old.bytes("k") == [1])
            try old.flush()
            try #expect(old.bytes("k") == [1])
            let attributes = try #require(try any.attributes(of: "k"))
            #expect(!attributes.isPinned && attributes.expires == nil && attributes.metadata == [])
            try #expect(new.remove(.otherVersions) == 1)
            try #expect(old.get("k") == nil)
        }
    }

    @Test func aPendingRemovalIsOfItsVersionOnly() throws {
        try withVersions { old, new, any in
            try new.remove("k")
            try old.put([1], for: "k")
            try new.remove("k")
            try old.flush()
            try #expect(old.bytes("k") == [1])
            try old.remove("k")
            try new.remove("k")
            try old.flush()
            try #expect(any.get("k") == nil)
        }
    }

    @Test func aRemovalOfAPutKeepsTheRemovalThatCameBefore() throws {
        try withDirectory { path in
            func open(_ version: String) throws -> Store {
                var configuration = Configuration.holding
                configuration.version = version
                return try Store(at: path, configuration)
            }
            let (old, new) = (try open("1.0"), try open("2.0"))
            try old.put([1], for: "k")
            try old.flush()
            try old.remove("k")
            try new.put([2], for: "k")
            try new.remove("k")
            try old.flush()
            try #expect(old.get("k") == nil)
            try new.close()
            try finish(old)
        }
    }

    @Test func overwritingAnotherVersionsEntryTakesNothingOver() throws {
        let clock = TestClock()
        try withDirectory { path in
            let old = try Store(at: path, .testing(clock: clock) { $0.version = "1.0" })
            let new = try Store(at: path, .testing(clock: clock) { $0.version = "2.0" })
            for flushes in [false, true] {
                try old.put([1], for: "k", PutOptions(isPinned: true))
                if flushes { try old.flush() }
                clock.advance(by: .seconds(10))
                try new.put([2], for: "k")
                let attributes = try #require(try new.attributes(of: "k"))
                #expect(!attributes.isPinned)
                #expect(attributes.created == attributes.stored)
                try new.remove("k")
            }
            try old.close()
            try finish(new)
        }
    }

    @Test func aLeaseIsOfItsVersion() throws {
        try withDirectory { path in
            let old = try Store(at: path, .testing(budget: Budget(entries: 2)) { $0.version = "1.0" })
            let new = try Store(at: path, .testing { $0.version = "2.0" })
            try old.put([1], for: "o")
            try new.put([2], for: "n")
            let leases = try (new.lease("o", for: .seconds(1000)), new.lease("n", for: .seconds(1000)))
            try new.put([3], for: "third")
            try new.flush()
            // Neither the one that was used last nor the one that is leased by its own version.
            try #expect(old.get("o") == nil)
            try #expect(new.bytes("n") == [2])
            leases.0.release()
            leases.1.release()
            try new.put([4], for: "fourth")
            try new.flush()
            try #expect(new.keys() == ["fourth", "n"] || new.keys() == ["fourth", "third"])
            try old.close()
            try finish(new)
        }
    }

    // MARK: Clearing

    @Test func clearingForgetsVersionsThatAreNotInUse() throws {
        try withDirectory { path in
            for number in 0..<5 { try open(path, "v\(number)").close() }
            let used = try open(path, "v1")
            let any = try open(path, nil)
            try any.clear()
            try #expect(any.applicationVersions().keys.sorted() == ["v1", "v4"])
            try used.put([1], for: "k")
            // Numbering continues: a store that is still open somewhere keeps the one it has.
            let next = try open(path, "v0")
            #expect(next.applicationVersion?.number == 6)
            try #expect(next.get("k") == nil)
            try used.close()
            try next.close()
            try finish(any)
        }
    }

    /// The clearing has looked at who is there before the store with that version is, and its transaction ends
    /// afterwards.
    @Test func aStoreThatOpensWhileAnotherClearsGetsANumberThatStays() throws {
        try withDirectory { path in
            for number in 0..<3 { try open(path, "v\(number)").close() }
            let any = try open(path, nil)
            let engine = any.engine
            let opened = Mutex<Store?>(nil)
            let opening = try engine.mutate(.housekeeping) { mutation in
                try engine.versions.forget(in: mutation)
                let opening = Threads(1) { _ in
                    let store = try Store(at: path, .testing { $0.version = "v0" })
                    opened.withLock { $0 = store }
                }
                blockWhile { !engine.context.audience.versions.contains("v0") }
                return opening
            }
            try opening.join()
            let store = try #require(opened.withLock { $0 })
            try #expect(any.applicationVersions()["v0"] == store.applicationVersion)
            try any.clear()
            try #expect(any.applicationVersions()["v0"] == store.applicationVersion)
            try store.close()
            try finish(any)
        }
    }

    @Test func numbersThatWereForgottenAreTakenWhenNoOthersAreLeft() {
        #expect(Versions.freeVersion([]) == 1)
        #expect(Versions.freeVersion([1, 7]) == 8)
        #expect(Versions.freeVersion([1, 2, 65_534]) == 3)
        #expect(Versions.freeVersion(Set(1...65_534)) == nil)
    }
}
