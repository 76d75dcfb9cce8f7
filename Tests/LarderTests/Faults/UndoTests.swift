import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Commits that fail or are undone after body files were moved out of the way: whatever the index names in the end is
/// there.
struct UndoTests {
    private static let durable = PutOptions(durability: .durable)

    #if LARDER_FAILPOINTS
        /// The disk refuses what would put the files back, too.
        @Test(arguments: [
            "rename=EIO@2+", "rename=EIO@3+", "mdb_txn_commit=EIO;rename=EIO@4+",
            "mdb_txn_commit=EIO;mdb_txn_begin.write=EIO@2+",
            "mdb_txn_commit=MDB_PANIC;mdb_txn_begin.write=MDB_PANIC@2+",
        ])
        func removalThatCanBeNeitherMadeNorUndoneLosesNoBody(_ rules: String) throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                for number in 0..<3 {
                    var options = Self.durable
                    options.tags = ["t"]
                    try store.put(body(20_000, number), for: Key("\(number)"), options)
                }
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list(rules)))
                #expect(throws: LarderError.self) { try store.remove(.tag("t")) }
                #expect(scope.injected > 1)
                scope.lift()
                // Gives the reaper its chance.
                _ = try store.statistics()
                for number in 0..<3 {
                    #expect(try store.get(Key("\(number)"))?.body.bytes() == body(20_000, number))
                }
                try store.close()
                let again = try Store(at: directory, FaultScenario.configuration)
                for number in 0..<3 {
                    #expect(try again.get(Key("\(number)"))?.body.bytes() == body(20_000, number))
                }
                try finish(again)
            }
        }

        /// The scrubber, or a checkpoint, of another process notes something in the record before the file is put back.
        @Test func aFileWhoseRecordWasRewrittenMeanwhileIsStillPutBack() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                let engine = store.engine
                try store.put(body(20_000, 1), for: "k", PutOptions(tags: ["t"], durability: .durable))
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("mdb_txn_commit=EIO@1")))
                scope.at("restore.before") {
                    try? engine.mutate(.housekeeping) { mutation in
                        let row = try Digest.of(body(20_000, 1)).withBytes {
                            try mutation.reading.get(engine.index.digests, $0)
                        }
                        guard let blob = row.flatMap(DigestRecord.init)?.blob,
                            let head = try mutation.reading.get(engine.index.blobs, blob).flatMap(BlobRecord.init)
                        else { return }
                        var noted = head
                        noted.epoch += 1
                        try mutation.blobs.rewrite(blob, head, noted)
                    }
                }
                #expect(throws: LarderError.self) { try store.remove(.tag("t")) }
                #expect(scope.hits["restore.before"] == 1 && scope.hits["mdb_txn_commit"] == 2)
                scope.lift()
                engine.writing?.reaper.drain()
                #expect(try store.bytes("k") == body(20_000, 1))
                try finish(store)
            }
        }

        /// Models a power loss that undoes the last commit, which was not synced; the names are kept.
        @Test func durableOverwriteKeepsTheReplacedBodyUntilTheIndexIsSynced() throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                let data = path.appending("index").appending("data.mdb")
                let store = try Store(at: path, FaultScenario.configuration)
                try store.put(body(20_000, 1), for: "k", Self.durable)
                let before = try TestFiles.read(data)
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("mdb_env_sync=EIO")))
                try #expect(code { try store.put(body(20_000, 2), for: "k", Self.durable) } == .io)
                scope.lift()
                // Ends with the reaper.
                try store.close()
                #expect(TestFiles.names(in: path.appending("trash")).count == 1)
                try TestFiles.write(before, to: data)
                var configuration = FaultScenario.configuration
                configuration.bootIdentity = 77
                let again = try Store(at: path, configuration)
                #expect(try again.get("k")?.body.bytes() == body(20_000, 1))
                try again.collect()
                try finish(again)
            }
        }

        @Test func whatWasKeptForWantOfASyncGoesWithTheNextOne() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                try store.put(body(20_000, 1), for: "k", Self.durable)
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("mdb_env_sync=EIO")))
                try #expect(code { try store.put(body(20_000, 2), for: "k", Self.durable) } == .io)
                _ = try store.statistics()
                #expect(TestFiles.names(in: directory.appending("trash")).count == 1)
                scope.lift()
                try store.checkpoint()
                _ = try store.statistics()
                #expect(TestFiles.names(in: directory.appending("trash")) == [])
                try finish(store)
            }
        }
    #endif
}
