import Larder
import SystemPackage
import Locks
import Testing
import TestSupport

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// What runs out or goes away under a store that is in use: an error with a type or a miss, and afterwards everything
/// works. Limits of a whole process are tested by `tools/torture resources`.
struct ResourceTests {
    @Test func moreReadersThanSlotsAreRefusedAndTheRestGoesOn() throws {
        try withStore { store in
            try store.put(body(100), for: "k")
            try store.flush()
            var deepest = 0
            func descend(_ depth: Int) throws {
                deepest = depth
                if depth == 1100 { return }
                _ = try store.withBody(of: "k") { _ in try descend(depth + 1) }
            }
            try #expect(code { try descend(0) } == .readersFull)
            #expect(deepest > 900)
            #expect(try store.get("k")?.body.bytes() == body(100))
        }
    }

    /// Every commit beside it leaves pages that it may still see. Displacing for those would lose one entry after the
    /// other and gain nothing; what was put since makes room for what is put next.
    @Test func readerThatNeverEndsCostsNeitherTheBudgetNorTheStore() throws {
        let budget = Budget(bytes: .mebibytes(16))
        try withStore(configuration: .testing(budget: budget)) { store in
            try store.put(body(100), for: "held", PutOptions(isPinned: true))
            for number in 0..<3000 { try store.put(body(3900, number), for: Key("\(number)")) }
            try store.flush()
            let before = try store.statistics().entryCount
            var refused = 0
            var most: Int64 = 0
            _ = try store.withBody(of: "held") { _ in
                for number in 0..<600 {
                    do {
                        try store.put(body(3900, number), for: Key("n\(number)"), PutOptions(durability: .durable))
                    } catch let error as LarderError where error.code == .noSpace {
                        refused += 1
                    }
                    most = max(most, recount(store.path))
                }
            }
            #expect(refused == 0)
            #expect(most <= budget.bytes.bytes)
            #expect(try store.statistics().entryCount > before / 2)
            for number in 0..<50 {
                try store.put(body(3900, number), for: Key("after\(number)"), PutOptions(durability: .durable))
            }
            #expect(recount(store.path) <= budget.bytes.bytes)
        }
    }

    @Test func directoryThatIsDeletedIsAnErrorAndANewStoreAfterwards() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, .testing())
            for number in 0..<20 { try store.put(body(number % 2 == 0 ? 100 : 9000, number), for: Key("\(number)")) }
            try store.flush()
            removeTree(path)
            for number in 0..<20 {
                // What is in the map is still there; a file is not.
                let found = try store.get(Key("\(number)"))?.body.bytes()
                #expect(found == nil || found == body(number % 2 == 0 ? 100 : 9000, number))
            }
            let failure = try code { try store.put(body(9000, 99), for: "new", PutOptions(durability: .durable)) }
            #expect(failure == .io)
            // Beside the one that lost its directory.
            let second = try Store(at: path, .testing())
            #expect(try second.get("1") == nil)
            try second.put(body(9000, 1), for: "1")
            _ = try code { try store.close() }
            #expect(try second.get("1")?.body.bytes() == body(9000, 1))
            try finish(second)
            try finish(Store(at: path, .testing()))
        }
    }

    @Test func clockThatJumpsLeavesEverythingInOrder() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(4)), clock: clock)) { store in
            var generator = SeededGenerator(seed: 4)
            for number in 0..<400 {
                let key = Key("\(number % 60)")
                switch number % 4 {
                case 0: clock.jump(by: .seconds(Int.random(in: -400_000_000...400_000_000, using: &generator)))
                case 1: clock.advance(by: .seconds(1))
                default: break
                }
                try store.put(
                    body(200 + number * 40, number), for: key, PutOptions(lifetime: .duration(.seconds(number % 3))))
                if let found = try store.get(key)?.body.bytes() { #expect(found == body(200 + number * 40, number)) }
                if number % 100 == 99 {
                    try store.collect()
                    try verify(store)
                }
            }
        }
    }

    #if LARDER_FAILPOINTS
        @Test func removalThatDoesNotFitTheDiskIsTriedInSmallerParts() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                for number in 0..<10 { try store.put(body(100, number), for: Key("\(number)")) }
                try store.flush()
                // The whole, with the reserve of the index; the first half, with it; then parts of that.
                let scope = FaultScope(
                    under: directory.string,
                    try #require(FaultRule.list((1...4).map { "mdb_txn_commit=ENOSPC@\($0)" }.joined(separator: ";"))))
                #expect(try store.remove(.all) == 10)
                #expect(scope.injected == 4)
                scope.lift()
                try finish(store)
            }
        }

        /// As F_FULLFSYNC is by network volumes on macOS, and fdatasync(2) by some file systems on Linux.
        @Test(arguments: [ENOTSUP, EINVAL, ENOSYS]) func aRefusedSyncOfAFileIsDoneWithFsync(_ number: Int32) throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                let scope = FaultScope(
                    under: directory.string, try #require(FaultRule.list("fdatasync=\(number)")))
                let durable = PutOptions(durability: .durable)
                try store.put(body(9000), for: "f", durable)
                #expect(scope.injected >= 1)
                #expect(scope.hits["fsync", default: 0] >= 2)
                // What fails for another reason, or is refused in both ways, is an error.
                scope.set(try #require(FaultRule.list("fdatasync=EIO")))
                try #expect(code { try store.put(body(9001), for: "g", durable) } == .io)
                scope.set(try #require(FaultRule.list("fdatasync=\(number);fsync=\(number)")))
                try #expect(code { try store.put(body(9002), for: "h", durable) } == .io)
                scope.lift()
                try #expect(store.bytes("f") == body(9000))
                try finish(store)
            }
        }

        @Test func fullMapIsAnErrorOfItsOwn() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("mdb_put=MDB_MAP_FULL")))
                let durable = PutOptions(durability: .durable)
                try #expect(code { try store.put(body(10), for: "k", durable) } == .mapFull)
                try #expect(code { try store.put(body(9000), for: "f", durable) } == .mapFull)
                scope.lift()
                try store.put(body(10), for: "k", durable)
                try finish(store)
            }
        }
    #endif
}
