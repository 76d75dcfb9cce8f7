import LMDB
import TestSupport
import Testing

@testable import Larder

/// Entries whose record does not match its seal.
@Suite struct DamagedRecordTests {
    /// A store with two entries, one of them damaged.
    private func withDamage(_ body: (Store) throws -> Void) throws {
        try withStore { store in
            for key in ["k", "sound"] { try store.put([1, 2, 3], for: Key(key), PutOptions(metadata: [7, 7])) }
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                let key = Array("k".utf8)
                var record = try #require(try mutation.record(key))
                record.metadata[0] ^= 1
                try mutation.transaction.put(store.engine.index.entries, key, record.bytes)
                mutation.noteChange(trees: 1)
            }
            try body(store)
            _ = try store.check(repair: true)
        }
    }

    /// The new record would have a seal that matches.
    @Test func aChangeDoesNotMakeItValid() throws {
        try withDamage { store in
            #expect(try store.pin("k") == false)
            #expect(try store.pin("sound"))
            let report = try store.check()
            #expect(report.violations.count == 1 && report.violations.first?.invariant == .I1)
        }
    }

    @Test func itIsNotPresent() throws {
        try withDamage { store in
            #expect(try store.attributes(of: "k") == nil)
            #expect(try store.keys() == ["sound"])
            var batch = WriteBatch()
            batch.put([4], for: "k", unlessPresent: true)
            try store.write(batch).throwIfFailed()
            try #expect(store.bytes("k") == [4])
            #expect(try store.check().violations.isEmpty)
            try store.put([1], for: "other")
            try store.flush()
        }
    }
}
