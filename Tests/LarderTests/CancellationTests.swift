import TestSupport
import Testing

@testable import Larder

/// A cancelled task throws `CancellationError`, whatever it was doing.
@Suite struct CancellationTests {
    private struct Stop: Error {}

    @Test func everyLongCallStops() async throws {
        try await withStore { store in
            for number in 0..<600 { try await store.put([UInt8(number % 250)], for: Key("k\(number)")) }
            let calls: [(String, @Sendable () async throws -> Void)] = [
                ("check", { _ = try await store.perform { try $0.check() } }),
                ("collect", { _ = try await store.perform { try $0.collect() } }),
                ("keys", { _ = try await store.perform { try $0.keys() } }),
                ("remove", { _ = try await store.remove(.all) }),
                ("entries", { for try await _ in try store.entries() {} }),
                ("chunks", { for try await _ in try #require(try await store.get("k1")).body.chunks() {} }),
            ]
            for (name, call) in calls {
                let task = Task {
                    await untilCancelled()
                    try await call()
                }
                task.cancel()
                await #expect(throws: CancellationError.self, "\(name)") { try await task.value }
            }
        }
    }

    @Test func aCallThatIsUnderWayStops() async throws {
        try await withStore { store in
            for number in 0..<600 { try await store.put([UInt8(number % 250)], for: Key("k\(number)")) }
            let task = Task {
                try await store.perform { store in
                    try store.collect { step, _ in
                        guard step == .expired else { return }
                        while !Cancellation.isCancelled {}
                    }
                }
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
        }
    }

    @Test func progressMayThrowEverywhere() async throws {
        try await withStore { store in
            for number in 0..<600 { try await store.put(body(10, number), for: Key("k\(number)")) }
            try await store.perform { try $0.flush() }
            await #expect(throws: Stop.self) { try await store.remove(.all) { _ in throw Stop() } }
            await #expect(throws: Stop.self) { try await store.perform { try $0.check { _ in throw Stop() } } }
            await #expect(throws: Stop.self) { try await store.perform { try $0.collect { _, _ in throw Stop() } } }
            #expect(throws: Stop.self) { try store.remove(.all) { _ in throw Stop() } }
            #expect(throws: Stop.self) { _ = try store.check { _ in throw Stop() } }
            #expect(throws: Stop.self) { try store.collect { _, _ in throw Stop() } }
        }
    }
}
