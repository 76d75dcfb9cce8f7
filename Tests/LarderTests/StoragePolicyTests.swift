import TestSupport
import Testing

@testable import Larder

@Suite struct StoragePolicyTests {
    private let memoryOnly = PutOptions(storagePolicy: .memoryOnly)
    private let session = PutOptions(storagePolicy: .session)

    @Test func memoryOnlyEntriesNeverReachTheDisk() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let marker = body(20_000, 99)
            try store.put(marker, for: "m", memoryOnly)
            try #expect(store.bytes("m") == marker)
            try store.flush()
            try #expect(store.bytes("m") == marker)
            try #expect(store.contains("m") == true)
            try #expect(store.attributes(of: "m")?.storagePolicy == .memoryOnly)
            try #expect(store.keys() == ["m"])
            try #expect(store.statistics().entryCount == 0)
            #expect(TestFiles.tree(path.appending("blobs")) == [])
            try finish(store)
            let data = try TestFiles.read(path.appending("index/data.mdb"))
            #expect(!contains(data, Array(marker.prefix(16))))
            let again = try Store(at: path, .testing())
            try #expect(again.get("m") == nil)
            try finish(again)
        }
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == part[0] && bytes[$0...].starts(with: part) }
    }

    @Test func aMemoryOnlyPutIsSeenAtOnceEvenOverADiskEntry() throws {
        try withStore(configuration: .holding) { store in
            try store.put([1], for: "k")
            try store.flush()
            try store.put([2], for: "k", memoryOnly)
            try #expect(store.bytes("k") == [2])
            try #expect(store.contains("k") == true)
            try #expect(store.withBody(of: "k") { $0.byteCount } == 1)
            try store.flush()
            try #expect(store.bytes("k") == [2])
            try #expect(store.statistics().entryCount == 0)
            try store.put([3], for: "k")
            try #expect(store.bytes("k") == [3])
            try #expect(store.keys() == ["k"])
            try store.put([4], for: "k", memoryOnly)
            try #expect(store.remove("k") == true)
            try #expect(store.get("k") == nil)
            try #expect(store.keys() == [])
        }
    }

    @Test func memoryIsBoundedAndTheLeastRecentlyUsedGo() throws {
        try withStore(configuration: .testing { $0.memoryLimit = .kibibytes(64) }) { store in
            for number in 0..<6 {
                try store.put(body(10_000, number), for: Key("m\(number)"), memoryOnly)
                _ = try store.get("m0")
            }
            for number in 6..<9 { try store.put(body(10_000, number), for: Key("m\(number)"), memoryOnly) }
            try #expect(store.bytes("m0") == body(10_000, 0))
            try #expect(store.get("m1") == nil)
            try #expect(store.bytes("m8") == body(10_000, 8))
            try #expect(code { try store.put(body(70_000), for: "big", memoryOnly) } == .tooLarge)
        }
    }

    @Test func memoryOnlyEntriesExpireAndAreSelected() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "a", PutOptions(lifetime: .duration(.seconds(5)), storagePolicy: .memoryOnly))
            try store.put([2], for: "b", PutOptions(storagePolicy: .memoryOnly, tags: ["t"]))
            clock.advance(by: .seconds(6))
            try #expect(store.get("a") == nil)
            try #expect(store.keys(.tag("t")) == ["b"])
            try #expect(store.remove(.expired) == 1)
            try #expect(store.remove(.tag("t")) == 1)
            try #expect(store.keys() == [])
        }
    }

    @Test func aMemoryOnlyEntryThatWasHitIsNotUnused() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "hit", memoryOnly)
            try store.put([1], for: "idle", memoryOnly)
            clock.advance(by: .seconds(100))
            _ = try store.get("hit")
            let moment = clock.now() - .seconds(50)
            try #expect(store.remove(.unusedSince(moment)) == 1)
            try #expect(store.keys() == ["hit"])
        }
    }

    // MARK: Sessions

    @Test func sessionEntriesGoWhenTheStoreIsClosed() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(10), for: "small", session)
            try store.put(body(9000), for: "large", session)
            try store.put(body(9000), for: "shared")
            try store.put([1], for: "permanent")
            try #expect(store.bytes("large") == body(9000))
            try finish(store)
            let again = try Store(at: path, .testing())
            try #expect(again.keys() == ["permanent", "shared"])
            try #expect(again.bytes("shared") == body(9000))
            try finish(again)
        }
    }

    @Test func aSessionEndsWithItsLastStoreOrWhenItIsEnded() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            let second = try Store(at: path, .testing())
            try first.put([1], for: "s", session)
            try first.close()
            try #expect(second.bytes("s") == [1])
            try second.endSession()
            try #expect(second.get("s") == nil)
            try second.put([2], for: "s", session)
            try #expect(second.bytes("s") == [2])
            // Put again as permanent, it is no longer the session's.
            try second.put([3], for: "s")
            try second.endSession()
            try #expect(second.bytes("s") == [3])
            try finish(second)
        }
    }

    @Test func entriesAreClearedByPolicy() throws {
        try withStore { store in
            for number in 0..<10 {
                try store.put([UInt8(number)], for: Key("p\(number)"))
                try store.put([UInt8(number)], for: Key("s\(number)"), session)
                try store.put([UInt8(number)], for: Key("m\(number)"), memoryOnly)
            }
            try #expect(store.remove(.policy(.session)) == 10)
            try #expect(store.keys().count == 20)
            try #expect(store.remove(.policy(.memoryOnly)) == 10)
            try #expect(store.keys(.policy(.permanent)).count == 10)
            try #expect(store.remove(.policy(.permanent)) == 10)
            try #expect(store.keys() == [])
        }
    }
}
