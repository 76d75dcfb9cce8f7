import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What a lookup remembers from one commit to the next.
@Suite struct WarmLookupTests {
    private static let lengths = [20, 600, 1500, 3000, 9000]

    /// Bodies of every form: embedded, inline, short and long, and files.
    private static let configuration = Configuration.testing { $0.embeddingThreshold = 100 }

    /// Hits until what is found is copied: a line, a commit that makes it void, and a line again.
    private func warm(_ store: Store, _ keys: [Key]) throws {
        // A cache that has not proved its worth copies nothing.
        for _ in 0..<600 / keys.count { for key in keys { _ = try store.peek(key) } }
        for round in 0..<3 {
            for key in keys { _ = try store.get(key) }
            try store.put([UInt8(round)], for: Key("other \(round)"))
            try store.flush()
        }
        for key in keys { _ = try store.get(key) }
    }

    private func body(_ key: Int, _ version: Int) -> [UInt8] {
        TestSupport.body(Self.lengths[key % Self.lengths.count], key * 1000 + version)
    }

    @Test func changesOfThisProcessAreSeen() throws {
        try withStore(configuration: Self.configuration) { store in
            let keys = (0..<20).map { Key("k\($0)") }
            for (number, key) in keys.enumerated() { try store.put(body(number, 0), for: key) }
            try store.flush()
            for version in 1...5 {
                try warm(store, keys)
                for (number, key) in keys.enumerated() where number % 3 == version % 3 {
                    try store.put(body(number, version), for: key, PutOptions(metadata: [UInt8(version)]))
                }
                try store.remove(Key("k\(version)"))
                try store.flush()
                for (number, key) in keys.enumerated() {
                    let entry = try store.get(key)
                    if number == version, number % 3 != 0 || number == version {
                        #expect(entry == nil)
                        try store.put(body(number, 0), for: key)
                    } else if number % 3 == version % 3 {
                        try #expect(entry?.body.bytes() == body(number, version) && entry?.metadata == [UInt8(version)])
                    }
                }
            }
        }
    }

    /// A use of an entry moves it in the access order; the next one must find it there.
    @Test func usesAreCountedThroughCommits() throws {
        try withStore(configuration: Self.configuration) { store in
            for number in 0..<5 { try store.put(body(number, 0), for: Key("k\(number)")) }
            try store.flush()
            let keys = (0..<5).map { Key("k\($0)") }
            for _ in 0..<4 {
                try warm(store, keys)
                try store.flush()
            }
            for key in keys { try #expect(store.attributes(of: key)?.hitCount == 16) }
        }
    }

    @Test func changesOfOtherProcessesAreSeen() throws {
        try withDirectory { path in
            let store = try Store(at: path, Self.configuration)
            for key in ["a", "b"] { try store.put([1], for: Key(key)) }
            try store.flush()
            try warm(store, ["a", "b"])
            // What another process does is a commit of its own.
            func change(_ key: String, _ value: UInt8) throws {
                let index = store.engine.index
                try index.environment.write { transaction in
                    let mutation = try Mutation(
                        index: index, files: store.engine.files, transaction: transaction, now: store.engine.clock.now()
                    )
                    let record = try #require(try mutation.record(Array(key.utf8)))
                    var new = record
                    new.embedded = EntryRecord.Embedded([value], Digest.of([value]))
                    new.seal(for: Array(key.utf8), Digest.of([value]))
                    try transaction.put(index.entries, Array(key.utf8), new.bytes)
                }
            }
            try change("a", 2)
            try #expect(store.bytes("a") == [2] && store.bytes("b") == [1])
            try warm(store, ["a", "b"])
            // One of another, then one of this.
            try change("b", 3)
            try store.put([9], for: "c")
            try store.flush()
            try #expect(store.bytes("a") == [2] && store.bytes("b") == [3])
            try finish(store)
        }
    }

    @Test func aBodyThatIsFoundDamagedIsAMiss() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(1, 0), for: "k")
            try store.flush()
            try warm(store, ["k"])
            let blob = try #require(
                try store.engine.read { try store.engine.index.entry(Array("k".utf8), $0) }?.blob)
            try store.engine.mutate(.housekeeping) { try $0.blobs.markDamaged(blob) }
            try #expect(store.get("k") == nil && !store.contains("k"))
            try store.put(body(1, 0), for: "k")
            try #expect(store.bytes("k") == body(1, 0))
        }
    }

    @Test func clearAndDisplacementAreSeen() throws {
        let configuration = Configuration.testing(budget: Budget(entries: 10)) { $0.embeddingThreshold = 100 }
        try withStore(configuration: configuration) { store in
            for number in 0..<10 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            for _ in 0..<3 {
                for number in 0..<10 { _ = try store.peek(Key("k\(number)")) }
                try store.pin("k9")
                try store.unpin("k9")
            }
            for number in 10..<14 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(try (0..<4).allSatisfy { try store.get(Key("k\($0)")) == nil })
            try store.clear()
            #expect(try (0..<14).allSatisfy { try store.get(Key("k\($0)")) == nil })
        }
    }

    /// LMDB gives the number of a transaction that wrote nothing again: to another process, perhaps.
    @Test func commitOfNothingLeavesRoomForAnotherProcess() throws {
        try withStore(configuration: Self.configuration) { store in
            let keys = (0..<5).map { Key("k\($0)") }
            for (number, key) in keys.enumerated() { try store.put(body(number, 0), for: key) }
            try store.flush()
            try warm(store, keys)
            // The uses, so that they are not part of the commit that follows.
            try store.flush()
            for key in keys { _ = try store.peek(key) }
            let last = try store.engine.index.environment.latestTransaction()
            try store.remove(Key("absent"))
            try store.flush()
            try #require(store.engine.index.environment.latestTransaction() == last)
            try replaceBehindItsBack(store, keys[0])
        }
    }

    /// What another process would do: the entry goes, is missed, and comes back.
    private func replaceBehindItsBack(_ store: Store, _ key: Key) throws {
        let index = store.engine.index
        let row = try index.environment.write { transaction in
            let row = try transaction.reading.get(index.entries, key.bytes).map { [UInt8]($0) }
            try transaction.delete(index.entries, key.bytes)
            return row
        }
        #expect(try store.peek(key) == nil)
        try index.environment.write { try $0.put(index.entries, key.bytes, #require(row)) }
        #expect(try store.peek(key) != nil)
    }

    // MARK: Parts

    @Test func onlyOwnCommitsInARowCount() throws {
        try withStore { store in
            let commits = OwnCommits()
            func commit(_ changed: String? = nil) throws -> UInt64 {
                let index = store.engine.index
                let transaction = try index.environment.beginWrite()
                transaction.watch(index.entries, index.blobs)
                if let changed { try transaction.put(index.entries, Array(changed.utf8), [0]) }
                let number = transaction.reading.id
                if changed == nil { try transaction.put(index.meta, [9], [UInt8(truncatingIfNeeded: number)]) }
                commits.willCommit(transaction)
                try transaction.commit()
                commits.didCommit(number)
                return number
            }
            func foreign() throws {
                let index = store.engine.index
                try index.environment.write { try $0.put(index.meta, [8], [UInt8(truncatingIfNeeded: $0.reading.id)]) }
            }
            let hash = Array("key".utf8).withUnsafeBytes { KeyHash.of($0) }
            let first = try commit()
            let second = try commit()
            #expect(commits.areAll(from: first, to: second) && commits.isUnchanged(hash, since: first))
            #expect(!commits.areAll(from: first, to: second + 1) && !commits.areAll(from: second, to: first))
            let third = try commit("key")
            #expect(commits.areAll(from: first, to: third) && !commits.isUnchanged(hash, since: second))
            #expect(commits.isUnchanged(hash, since: third))
            try foreign()
            #expect(!commits.areAll(from: third, to: third + 1))
            let fifth = try commit()
            #expect(!commits.areAll(from: third, to: fifth) && commits.areAll(from: third + 1, to: fifth))
            let index = store.engine.index
            _ = try index.environment.write { try $0.delete(index.entries, Array("key".utf8)) }
            try index.environment.write { transaction in
                for row in [[9], [8]] as [[UInt8]] { try transaction.delete(index.meta, row) }
            }
        }
    }

    @Test func whatIsPendingIsNeverFilteredOut() {
        let filter = PendingFilter()
        let keys = (0..<500).map { Key("k\($0)") }
        for (number, key) in keys.enumerated() { filter.add(key, UInt64(number & 1)) }
        #expect(keys.allSatisfy(filter.mayHave))
        filter.clear(0)
        for (number, key) in keys.enumerated() where number & 1 == 1 { #expect(filter.mayHave(key)) }
        filter.clear(1)
        #expect(!keys.contains(where: filter.mayHave))
    }
}
