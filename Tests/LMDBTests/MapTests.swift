import LMDB
import Synchronization
import TestSupport
import Testing

/// The map grows with the file.
@Suite struct MapTests {
    private func large(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }

    private func small(_ options: inout Environment.Options) { options.firstMapSize = 1 << 20 }

    @Test func theMapGrowsWithTheFile() throws {
        try withEnvironment(small) { environment, _ in
            let database = try environment.database("a", .integer)
            try #expect(environment.mapSize() == 1 << 20)
            for number in 0..<100 as Range<UInt64> {
                try environment.write { try $0.put(database, number, large(100_000)) }
            }
            try #expect(environment.mapSize() >= 10 << 20)
            for number in 0..<100 as Range<UInt64> {
                try environment.read { try #expect($0.bytes(database, number) == large(100_000)) }
            }
        }
    }

    @Test func theMapDoesNotGrowBeyondWhatIsAllowed() throws {
        try withEnvironment({
            $0.firstMapSize = 1 << 20
            $0.mapSize = 3 << 20
        }) { environment, _ in
            let database = try environment.database("a", .integer)
            let error = try #require(throws: LMDBError.self) {
                for number in 0..<100 as Range<UInt64> {
                    try environment.write { try $0.put(database, number, large(100_000)) }
                }
            }
            #expect(error.isMapFull)
            try #expect(environment.mapSize() == 3 << 20)
        }
    }

    /// A map that moves must not move below a read.
    @Test func readsGoOnWhileTheMapMoves() throws {
        try withEnvironment(small) { environment, _ in
            let database = try environment.database("a", .integer)
            let value = filler(5000, 0)
            try environment.write { try $0.put(database, 0, value) }
            let moves = Counter()
            environment.whenMapMoves { moves.increment() }
            let isOver = Flag()
            let readers = Threads(4) { number in
                var rounds = 0
                repeat {
                    let read = { (transaction: ReadTransaction) in
                        try #expect(transaction.bytes(database, 0) == value)
                    }
                    if number == 0 { try environment.readUnpooled(read) } else { try environment.read(read) }
                    rounds += 1
                } while !isOver.isSet || rounds < 10
            }
            for number in 1..<400 as Range<UInt64> {
                try environment.write { try $0.put(database, number, large(100_000)) }
            }
            isOver.set()
            try readers.join()
            try #expect(environment.mapSize() >= 40 << 20)
            #expect(moves.value >= 3)
        }
    }

    /// The second environment stands for another process: without locks it may have the file open twice.
    @Test func growthByAnotherProcessIsFollowed() throws {
        try withEnvironment { environment, path in
            let database = try environment.database("a", .integer)
            var options = Environment.Options()
            options.firstMapSize = 1 << 20
            options.skipsLocking = true
            let other = try Environment(path: path, options: options)
            defer { other.close() }
            let seen = try #require(try other.openDatabase("a", order: .integer, create: false))
            try other.read { try #expect($0.bytes(seen, 1) == nil) }
            try environment.write { try $0.put(database, 1, large(5 << 20)) }
            try other.read { try #expect($0.bytes(seen, 1) == large(5 << 20)) }
            try #expect(other.mapSize() > 5 << 20)
            try environment.write { try $0.put(database, 2, large(50 << 20)) }
            try other.readUnpooled { try #expect($0.bytes(seen, 2)?.count == 50 << 20) }
            try environment.write { try $0.put(database, 3, large(200 << 20)) }
            // LMDB without locks takes the latest state from the file.
            try other.write { try $0.put(seen, 4, [4]) }
            try other.read { try #expect($0.bytes(seen, 4) == [4]) }
        }
    }

    /// A read that does not end keeps the map from moving: there is an error after a second instead of an endless wait,
    /// also for a thread that waits for itself.
    @Test func aMapThatCannotFollowIsAnError() throws {
        try withEnvironment { environment, path in
            let database = try environment.database("a", .integer)
            var options = Environment.Options()
            options.firstMapSize = 1 << 20
            options.skipsLocking = true
            let other = try Environment(path: path, options: options)
            defer { other.close() }
            let seen = try #require(try other.openDatabase("a", order: .integer, create: false))
            try other.readUnpooled { _ in
                try environment.write { try $0.put(database, 1, large(5 << 20)) }
                let error = try #require(throws: LMDBError.self) { try other.read { _ in } }
                #expect(error.isMapResized)
            }
            try other.read { try #expect($0.bytes(seen, 1)?.count == 5 << 20) }
        }
    }
}

private final class Flag: Sendable {
    private let flag = Atomic<Bool>(false)
    var isSet: Bool { flag.load(ordering: .acquiring) }
    func set() { flag.store(true, ordering: .releasing) }
}
