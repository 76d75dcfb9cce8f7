#if LARDER_FAILPOINTS
    import Failpoints
    import Foundation
    import Locks
    import TestSupport
    import Testing

    @testable import Larder

    /// Puts that want the same room at the same moment.
    struct ReservationTests {
        private let budget = Budget(bytes: .mebibytes(2), largestEntry: .mebibytes(2))

        /// A step that the first thread to reach it does not pass before it is opened.
        private final class Gate: Sendable {
            private let hits = Atomic<Int>(0)
            private let semaphore = DispatchSemaphore(value: 0)

            func open() { semaphore.signal() }

            /// Holds the first caller; the later ones open the gate for it.
            func pass() {
                if hits.wrappingAdd(1, ordering: .relaxed).newValue > 1 { return open() }
                semaphore.wait()
            }
        }

        /// The committer commits four bodies while a fifth one, which does not fit beside them, asks for room.
        @Test func aPutThatFindsNoRoomTakesNoneFromThoseThatHaveTheirs() throws {
            try withDirectory { directory in
                let events = Events()
                let store = try Store(
                    at: directory, .testing(budget: budget) { $0.observer = { events.note($0) } })
                let scope = FaultScope(under: directory.string)
                let gate = Gate()
                // The first transaction is the committer's, the next one that of the fifth put, to displace.
                scope.at("mdb_txn_begin.write") { gate.pass() }
                for number in 0..<4 { try store.put(body(400_000, number), for: Key("k\(number)")) }
                scope.at("reserve.taken") {
                    gate.open()
                    store.pass()
                }
                try store.put(body(400_000, 4), for: "k4")
                scope.lift()
                try store.flush()
                #expect(events.commitFailed == 0)
                try #expect(store.bytes("k4") == body(400_000, 4))
                try expectNothingReserved(store)
                try finish(store)
            }
        }

        /// Once the other one is committed it can be displaced.
        @Test func aPutWaitsForOneThatIsBeingStaged() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing(budget: budget))
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("stage.written=stall@1")))
                let first = Thread { _ = try? store.put(body(1_000_000, 1), for: "first") }
                first.start()
                scope.waitUntilStalled()
                scope.at("wait.room") { scope.lift() }
                try store.put(body(1_000_000, 2), for: "second")
                try store.flush()
                try #expect(store.bytes("second") == body(1_000_000, 2))
                try finish(store)
            }
        }

        /// Nothing is pinned, and what is written at one moment is far from the budget: each put finds room.
        @Test func noPutIsRefusedWhileOthersCanBeDisplaced() throws {
            try withDirectory { directory in
                let events = Events()
                let store = try Store(
                    at: directory, .testing(budget: budget) { $0.observer = { events.note($0) } })
                let refused = Mutex<[any Error]>([])
                DispatchQueue.concurrentPerform(iterations: 4) { thread in
                    for round in 0..<60 {
                        let key = Key("k\(thread).\(round % 7)")
                        do {
                            switch (thread, round % 5) {
                            case (0, 4): try store.remove(key)
                            case (1, 4):
                                let writer = try store.partialWriter(for: "part", total: 150_000)
                                try writer.write(body(50_000, round), at: Int64(round % 3) * 50_000)
                                try writer.suspend()
                            case (_, 3): try store.put(body(1000, round), for: key)
                            default: try store.put(body(200_000 + 10_000 * (round % 11), round), for: key)
                            }
                        } catch {
                            refused.withLock { $0.append(error) }
                        }
                    }
                }
                try store.flush()
                #expect(refused.withLock { $0 }.isEmpty)
                #expect(events.commitFailed == 0)
                try finish(store)
            }
        }
    }
#endif
