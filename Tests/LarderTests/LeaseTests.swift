import TestSupport
import Testing

@testable import Larder

@Suite struct LeaseTests {
    /// A new lease looks at some rows for old ones, whatever number there are; all that are over go in time.
    @Test func leasesThatAreOverGoWithNewOnes() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            func rows() throws -> Int { try store.engine.read { try $0.statistics(store.engine.index.leases).entries } }
            var held: [Lease] = []
            for number in 0..<200 { held.append(try store.lease(Key("k\(number)"), for: .seconds(10))) }
            try #expect(rows() == 200)
            clock.advance(by: .seconds(20))
            for number in 0..<40 { held.append(try store.lease(Key("l\(number)"), for: .seconds(100))) }
            try #expect(rows() < 60)
            // Rows that are gone already do not make it fail.
            held = []
            try store.put([1], for: "k")
            try store.flush()
            try #expect(rows() == 0)
        }
    }

    // MARK: What attributes say of leases

    @Test func attributesHaveTheLeasesOfAnEntryUntilTheyAreOver() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            let digest = try store.put(body(10), for: "k", PutOptions(tags: ["t", "u"]))
            try #expect(store.attributes(of: "k")?.leases == [])
            try #expect(store.attributes(of: "k")?.leasedUntil == nil)
            let start = clock.now()
            let held = try store.lease("k", for: .seconds(10))
            var batch = WriteBatch()
            batch.lease(tag: "u", for: .seconds(30))
            batch.lease(digest: digest, for: .seconds(20))
            batch.lease("other", for: .seconds(99))
            batch.lease(tag: "none", for: .seconds(99))
            try store.write(batch).throwIfFailed()

            let ofKey = ActiveLease(subject: .key, expires: start + .seconds(10), holder: .process)
            let ofTag = ActiveLease(subject: .tag("u"), expires: start + .seconds(30), holder: .timeOnly)
            let ofContent = ActiveLease(subject: .content, expires: start + .seconds(20), holder: .timeOnly)
            try #expect(store.attributes(of: "k")?.leases == [ofKey, ofTag, ofContent])
            try #expect(store.attributes(of: "k")?.leasedUntil == start + .seconds(30))
            // They were not looked up.
            try #expect(store.get("k")?.attributes.leases == nil)
            try store.forEach { #expect($0.leases == nil) }

            held.release()
            try #expect(store.attributes(of: "k")?.leases == [ofTag, ofContent])
            clock.advance(by: .seconds(20))
            try #expect(store.attributes(of: "k")?.leases == [ofTag])
            clock.advance(by: .seconds(10))
            try #expect(store.attributes(of: "k")?.leases == [])
        }
    }

    @Test func attributesHaveTheLeasesOfAnEntryInMemory() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            try await store.put(body(10), for: "k", PutOptions(storagePolicy: .memoryOnly, tags: ["t"]))
            let held = try await store.lease(tag: "t", for: .seconds(10))
            let lease = ActiveLease(subject: .tag("t"), expires: clock.now() + .seconds(10), holder: .process)
            try await #expect(store.details(of: "k")?.leases == [lease])
            held.release()
            try await #expect(store.details(of: "k")?.leases == [])
        }
    }

    /// A store with an application version leases entries of its version only.
    @Test func attributesHaveTheLeasesOfTheEntrysVersionOnly() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing { $0.version = "1" })
            let second = try Store(at: path, .testing { $0.version = "2" })
            try first.put([1], for: "first")
            try second.put([2], for: "second")
            let held = [try first.lease("first"), try first.lease("second")]
            try #expect(first.attributes(of: "first")?.leases?.count == 1)
            try #expect(second.attributes(of: "second")?.leases == [])
            for lease in held { lease.release() }
            try second.close()
            try finish(first)
        }
    }

    /// SIGKILL ends the holder without a release: the lease holds until its time.
    @Test func aLeaseOfAnotherProcessProtectsAndIsShown() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            for key in ["k", "b", "c"] as [Key] { try store.put(key.bytes, for: key) }
            try store.flush()
            let worker = try Worker(store: path.string, mode: "lease", seed: 0, count: 3600)
            worker.waitUntilReady()
            worker.waitForLine("LEASED")
            func holders() throws -> [ActiveLease.Holder]? { try store.attributes(of: "k")?.leases?.map(\.holder) }
            try #expect(holders() == [.process])
            // It is the least recently used one.
            try store.setBudget(Budget(entries: 2))
            try #expect(store.keys() == ["c", "k"])
            worker.kill()
            _ = worker.finish()
            try #expect(holders() == [.endedProcess])
            try store.put([1], for: "d")
            try store.flush()
            try #expect(store.keys() == ["d", "k"])
            try #expect(store.attributes(of: "k")?.leases?.map(\.subject) == [.key])
            try finish(store)
        }
    }

    @Test func aLeaseThatAnotherProcessReleasedIsGone() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try store.flush()
            let worker = try Worker(store: path.string, mode: "leaseAndRelease", seed: 0, count: 3600)
            #expect(worker.finish().last == "OK")
            try #expect(store.attributes(of: "k")?.leases == [])
            try finish(store)
        }
    }
}
