import Larder
import SystemPackage
import TestSupport
import Testing

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// LMDB could not write a meta page, and refuses every further transaction: opening the store again is the remedy.
struct HaltedTests {
    private static let durable = PutOptions(durability: .durable)

    #if LARDER_FAILPOINTS
        @Test func indexThatWasHaltedSaysThatReopeningHelps() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                try store.put(body(100), for: "k", Self.durable)
                let scope = FaultScope(
                    under: directory.string, try #require(FaultRule.list("mdb_txn_commit=MDB_PANIC")))
                let error = try #require(throws: LarderError.self) { try store.put(body(9), for: "l", Self.durable) }
                scope.lift()
                #expect(error.code == .mustReopen)
                #expect(
                    error.message == "the index \(directory)/index/data.mdb could not be written and takes no more "
                        + "changes: close all stores at \(directory) in this process and open them again")
                try finish(store)
            }
        }
    #endif

    #if os(Linux)
        /// A real one: the disk refuses the meta page, and LMDB every transaction after that.
        @Test func storeWhoseMetaPagesCannotBeWrittenIsSoundAfterReopening() throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                let worker = try Worker(store: path.string, mode: "halted", seed: 0, count: 0)
                let lines = worker.finish()
                if lines.contains("UNSUPPORTED") { return }
                #expect(
                    lines == [
                        "C replace: mustReopen", "C remove: mustReopen", "C get: mustReopen", "C put: mustReopen",
                        "C close: mustReopen", "C get again: closed", "OK",
                    ])
                let store = try Store(at: path, .testing())
                for key in ["replaced", "removed", "read"] as [Key] {
                    #expect(try store.get(key)?.body.bytes().count == 20_000, "\(key)")
                }
                try finish(store)
            }
        }
    #endif
}
