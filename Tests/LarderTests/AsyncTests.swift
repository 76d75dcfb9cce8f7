import TestSupport
import Testing

@testable import Larder

/// The twins that hold no thread do what the synchronous calls do.
@Suite struct AsyncTests {
    @Test(arguments: [10, 9000, 2 << 20])
    func putAndGet(_ length: Int) async throws {
        for budget in [nil, Budget(bytes: .mebibytes(8))] {
            try await withStore(configuration: .testing(budget: budget)) { store in
                try await store.put(body(length), for: "k", PutOptions(metadata: [1]), digest: Digest.of(body(length)))
                let entry = try #require(try await store.get("k"))
                try await #expect(entry.body.bytes() == body(length))
                try await store.perform { try $0.flush() }
                let again = try #require(try await store.get("k"))
                try await #expect(again.body.bytes() == body(length))
                #expect(again.metadata == [1])
                try await store.put(body(length, 2), for: "d", PutOptions(durability: .durable))
                #expect(store.engine.writing?.pending.lookup("d", use: nil) == nil)
                try await #expect(store.figures().entryCount == 2)
            }
        }
    }

    @Test func errorsAreThoseOfTheSynchronousCalls() async throws {
        try await withStore(configuration: .testing(budget: Budget(largestEntry: 10_000))) { store in
            try await #expect(code { try await store.put([1], for: "") } == .invalidArgument)
            try await #expect(code { try await store.put(body(10_001), for: "k") } == .tooLarge)
            try await #expect(code { try await store.put([1], for: "k", digest: Digest.of([2])) } == .digestMismatch)
            try await #expect(
                code { try await store.perform { try $0.setBudget(Budget(entries: 0)) } } == .invalidArgument)
            let none = try await store.get("k")
            #expect(none == nil)
        }
    }

    @Test func aWriterTakesASequence() async throws {
        try await withStore { store in
            let pieces = AsyncStream { continuation in
                for number in 0..<20 { continuation.yield(body(1000, number)) }
                continuation.finish()
            }
            let writer = try store.writer(for: "k")
            try await writer.write(contentsOf: pieces)
            let whole = (0..<20).flatMap { body(1000, $0) }
            try await #expect(writer.commit() == Digest.of(whole))
            let stored = try #require(try await store.get("k"))
            try await #expect(stored.body.bytes() == whole)
        }
    }

    @Test func manyTasksPutAndGetWithoutStarvingEachOther() async throws {
        try await withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(8)))) { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<64 {
                    group.addTask {
                        for number in 0..<4 {
                            let key = Key("\(task)/\(number)")
                            let bytes = body(number % 2 == 0 ? 100 : 20_000, task * 10 + number)
                            try await store.put(bytes, for: key)
                            if let entry = try await store.get(key) {
                                let read = try await entry.body.bytes()
                                #expect(read == bytes)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await #expect(store.figures().entryCount == 256)
        }
    }

    @Test func sixtyFourThreadsUseTheSynchronousCalls() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(8)))) { store in
            try Threads.run(64) { thread in
                for number in 0..<4 {
                    let key = Key("\(thread)/\(number)")
                    let bytes = body(number % 2 == 0 ? 100 : 20_000, thread * 10 + number)
                    try store.put(bytes, for: key)
                    if let read = try store.bytes(key) { #expect(read == bytes) }
                }
            }
            try #expect(store.statistics().entryCount == 256)
        }
    }

    @Test func checkAndCollectRunElsewhere() async throws {
        try await withStore { store in
            for number in 0..<20 { try await store.put(body(number * 500, number), for: Key("k\(number)")) }
            let checked = try await store.perform { try $0.check() }
            #expect(checked.isClean)
            let report = try await store.perform { try $0.collect(compact: true) }
            #expect(report.danglingEntries == 0)
            #expect(report.orphanBlobs == 0)
            try await #expect(store.figures().entryCount == 20)
        }
    }
}
