import TestSupport
import Testing

@testable import Larder

@Suite struct ConcurrencyTests {
    /// A reader never sees a body that was not put under its key, whatever else happens at the same time.
    @Test(arguments: [nil, 2 << 20])
    func readersSeeOnlyWholeBodiesOfTheirKey(_ budget: Int?) throws {
        let configuration = Configuration.testing(budget: budget.map { Budget(bytes: ByteCount($0)) })
        try withStore(configuration: configuration) { store in
            // The first byte of a body names its key; the rest follows from its first eight.
            @Sendable func make(_ key: Int, _ version: Int) -> [UInt8] {
                let length = [10, 3000, 9000, 60_000][(key + version) % 4]
                return [UInt8(key)] + body(length, key * 1000 + version)
            }
            let done = Counter()
            let readers = Threads(3) { thread in
                var generator = SeededGenerator(seed: UInt64(thread))
                while done.value == 0 {
                    let key = Int.random(in: 0..<16, using: &generator)
                    guard let read = try store.bytes(Key("k\(key)")) else { continue }
                    #expect(read.first == UInt8(key))
                    #expect([11, 3001, 9001, 60_001].contains(read.count))
                }
            }
            try Threads.run(3) { thread in
                var generator = SeededGenerator(seed: UInt64(100 + thread))
                for version in 0..<100 {
                    let key = Int.random(in: 0..<16, using: &generator)
                    switch Int.random(in: 0..<8, using: &generator) {
                    case 0: try store.remove(Key("k\(key)"))
                    case 1: try store.touch(Key("k\(key)"))
                    default: try store.put(make(key, version), for: Key("k\(key)"), PutOptions(tags: ["t\(key % 3)"]))
                    }
                }
            }
            done.increment()
            try readers.join()
        }
    }

    @Test func oneDigestPutAndRemovedByManyKeepsItsCount() throws {
        try withStore { store in
            try Threads.run(6) { thread in
                for number in 0..<40 {
                    let key = Key("\(thread)/\(number % 3)")
                    if number % 4 == 3 { try store.remove(key) } else { try store.put(body(9000), for: key) }
                    if let read = try store.bytes(key) { #expect(read == body(9000)) }
                }
            }
            let statistics = try store.statistics()
            #expect(statistics.blobCount <= 1)
            #expect(statistics.fileCount == statistics.blobCount)
            try store.clear()
            #expect(TestFiles.tree(store.path.appending("blobs")) == [])
        }
    }

    @Test func collectingCheckingAndClearingGoAlongWithUse() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(4)))) { store in
            let done = Counter()
            let keeper = Threads(1) { _ in
                var round = 0
                while done.value == 0 {
                    switch round % 4 {
                    case 0: try store.collect(compact: true)
                    case 1: #expect(try store.check().isClean)
                    case 2: try store.setBudget(Budget(bytes: .mebibytes(round % 8 == 2 ? 2 : 4)))
                    default: if round % 16 == 15 { try store.clear() }
                    }
                    round += 1
                }
            }
            let outcome = Result {
                try Threads.run(3) { thread in
                    for number in 0..<80 {
                        let bytes = body([200, 4000, 30_000][number % 3], thread * 1000 + number)
                        try store.put(bytes, for: Key("\(thread)/\(number)"))
                        if let read = try store.bytes(Key("\(thread)/\(number)")) { #expect(read == bytes) }
                    }
                }
            }
            done.increment()
            try keeper.join()
            try outcome.get()
        }
    }

    @Test func openingAndClosingAPathFromManyThreadsSharesOneEngine() throws {
        try withDirectory { path in
            try Threads.run(6) { thread in
                for number in 0..<10 {
                    let store = try Store(at: path, .testing())
                    try store.put([UInt8(thread)], for: Key("\(thread)/\(number)"))
                    try store.close()
                }
            }
            let store = try Store(at: path, .testing())
            try #expect(store.statistics().entryCount == 60)
            try finish(store)
        }
    }
}
