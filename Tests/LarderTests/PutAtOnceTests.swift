#if LARDER_FAILPOINTS
    import Failpoints
    import TestSupport
    import Testing

    @testable import Larder

    /// Puts of threads that must not wait: they are made at once, or not at all.
    @Suite(.serialized)
    struct PutAtOnceTests {
        @Test func whatNeedsNoWaitingIsStored() throws {
            try withStore(configuration: .testing { $0.inlineThreshold = .kibibytes(16) }) { store in
                #expect(try store.putAtOnce(body(1000), for: "short", PutOptions(tags: ["t"])))
                try #expect(store.bytes("short") == body(1000))
                #expect(try store.putAtOnce(body(2000), for: "short", PutOptions()))
                try #expect(store.bytes("short") == body(2000))
                #expect(try !store.putAtOnce(body(20_000), for: "long", PutOptions()))
                #expect(try !store.putAtOnce(body(10), for: "durable", PutOptions(durability: .durable)))
                #expect(try !store.putAtOnce(body(10), for: "memory", PutOptions(storagePolicy: .memoryOnly)))
                #expect(try !store.putAtOnce(body(1000), for: "text", PutOptions(compression: .trial)))
                for key in ["long", "durable", "memory", "text"] as [Key] { try #expect(store.get(key) == nil) }
                #expect(throws: LarderError.self) { try store.putAtOnce([], for: Key(bytes: []), PutOptions()) }
                try store.flush()
                try #expect(store.bytes("short") == body(2000))
            }
        }

        @Test func aFullBatchIsNotWaitedFor() async throws {
            try await withDirectory { path in
                let (gate, scope) = (Gate(), FaultScope(under: path.string))
                scope.at("batch.before-staging-sync") { gate.pass() }
                let store = try Store(at: path.appending("store"), .testing { $0.pendingLimit = .kibibytes(64) })
                let held = Threads(1) { _ in
                    try store.put(body(300_000), for: "held", PutOptions(durability: .durable))
                }
                // The committer is busy from here on, and the next batch fills.
                await gate.arrival()
                var count = 0
                while try store.putAtOnce(body(2000, count), for: Key("k\(count)"), PutOptions()) { count += 1 }
                #expect(count > 0)
                #expect(count < 200)
                try await #expect(store.get(Key("k\(count)")) == nil)
                gate.open()
                try held.join()
                scope.lift()
                for number in 0..<count { try #expect(store.bytes(Key("k\(number)")) == body(2000, number)) }
                try finish(store)
            }
        }
    }
#endif
