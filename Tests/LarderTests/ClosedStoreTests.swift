import SystemPackage
import TestSupport
import Testing

@testable import Larder

@Suite struct ClosedStoreTests {
    @Test func everyCallOnAClosedStoreIsRefused() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            try await store.put([1], for: "k")
            let writer = try store.writer(for: "w")
            let reading = try store.entries()
            try await store.close()
            let file = path.appending("file")
            let calls: [(String, () throws -> Void)] = [
                ("put", { try store.put([1], for: "k") }), ("putLarge", { try store.put(body(9000), for: "k") }),
                ("putMemory", { try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly)) }),
                ("putUnique", { _ = try store.put([1]) }), ("putByContent", { _ = try store.putByContent([1]) }),
                ("get", { _ = try store.get("k") }), ("withBody", { _ = try store.withBody(of: "k") { _ in } }),
                ("contains", { _ = try store.contains("k") }), ("attributes", { _ = try store.attributes(of: "k") }),
                ("remove", { try store.remove("k") }), ("removeAll", { try store.remove(.all) }),
                ("clear", { try store.clear() }), ("keys", { _ = try store.keys() }),
                ("entries", { _ = try store.entries() }), ("forEach", { try store.forEach { _ in } }),
                ("touch", { try store.touch("k") }), ("pin", { try store.pin("k") }),
                ("unpin", { try store.unpin("k") }),
                ("pinTag", { try store.pin(tag: "t") }), ("unpinTag", { try store.unpin(tag: "t") }),
                ("pinnedTags", { _ = try store.pinnedTags() }), ("lease", { _ = try store.lease("k") }),
                ("leaseTag", { _ = try store.lease(tag: "t") }), ("writer", { _ = try store.writer(for: "k") }),
                ("writerByContent", { _ = try store.writerByContent() }),
                ("write", { try writer.write([1]) }), ("statistics", { _ = try store.statistics() }),
                ("budget", { _ = try store.budget() }), ("setBudget", { try store.setBudget(.unlimited) }),
                ("flush", { try store.flush() }), ("endSession", { try store.endSession() }),
                ("check", { _ = try store.check() }), ("repair", { _ = try store.check(repair: true) }),
                ("collect", { try store.collect() }), ("dryCollect", { try store.collect(dryRun: true) }),
                ("adopt", { try store.adopt(file, for: "k") }), ("export", { try store.export("k", to: file) }),
            ]
            for (name, call) in calls { try #expect(code(call) == .closed, "\(name)") }
            #expect(store["k"] == nil)
            store["k"] = [1]
            let twins: [(String, () async throws -> Void)] = [
                ("put", { try await store.put([1], for: "k") }),
                ("putLarge", { try await store.put(body(9000), for: "k") }),
                ("get", { _ = try await store.get("k") }), ("flush", { try await store.perform { try $0.flush() } }),
                ("statistics", { _ = try await store.perform { try $0.statistics() } }),
                ("remove", { _ = try await store.remove(.all) }),
                ("check", { _ = try await store.perform { try $0.check() } }),
                ("collect", { _ = try await store.perform { try $0.collect() } }),
                ("setBudget", { try await store.perform { try $0.setBudget(.unlimited) } }),
                ("adopt", { _ = try await store.perform { try $0.adopt(file, for: "k") } }),
                ("export", { _ = try await store.perform { try $0.export("k", to: file) } }),
                ("entries", { for try await _ in reading {} }),
            ]
            for (name, call) in twins { try await #expect(code(call) == .closed, "async \(name)") }
            try await store.close()
            // None of these calls changed the store.
            let again = try Store(at: path, .testing())
            try await #expect(again.listed() == ["k"])
            try finish(again)
        }
    }

    @Test func aClosedStoreStaysClosedWhileAnotherOfItsPathIsOpen() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            let second = try Store(at: path, .testing())
            try first.close()
            try #expect(code { try first.put([1], for: "k") } == .closed)
            try #expect(code { try first.get("k") } == .closed)
            try second.put([1], for: "k")
            try finish(second)
        }
    }

    @Test func leasesAndBodiesOutliveTheStoreQuietly() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(9000), for: "k")
            let lease = try store.lease("k")
            let entry = try #require(try store.get("k"))
            try store.close()
            lease.release()
            try #expect(entry.body.bytes() == body(9000))
            #expect(entry.metadata == [])
        }
    }

    @Test func closingWhileOthersReadAndWriteEndsThemWithClosed() throws {
        for round in 0..<10 {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                for number in 0..<20 { try store.put(body(number * 600, number), for: Key("k\(number)")) }
                let started = Counter()
                let users = Threads(6) { thread in
                    var step = thread
                    do {
                        while true {
                            let number = step % 20
                            if thread % 3 == 0 {
                                try store.put(body(number * 600, number), for: Key("k\(number)"))
                            } else if thread % 3 == 1 {
                                let read = try store.bytes(Key("k\(number)"))
                                #expect(read == body(number * 600, number))
                            } else {
                                _ = try store.keys(.prefix("k1"))
                            }
                            step += 1
                            started.increment()
                        }
                    } catch let error as LarderError {
                        #expect(error.code == .closed, "round \(round): \(error)")
                    }
                }
                started.wait(for: 30)
                try store.close()
                try users.join()
                #expect(TestFiles.names(in: path.appending("staging")).filter { $0.hasSuffix(".lock") } == [])
                let again = try Store(at: path, .testing())
                for number in 0..<20 { try #expect(again.bytes(Key("k\(number)")) == body(number * 600, number)) }
                try finish(again)
            }
        }
    }
}
