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
            // Rows of the damaged one are left, which it could not tell from those of others.
            #expect(try store.check(repair: true).isRepaired)
            try #expect(store.bytes("k") == [4])
            try store.put([1], for: "other")
            try store.flush()
        }
    }
    /// Its blob, its identifier and its rows may be those of a sound entry.
    @Test(arguments: [false, true]) func nothingIsDoneByWhatItSays(_ isRemoved: Bool) throws {
        try withStore { store in
            for key in ["k", "sound"] {
                let options = PutOptions(lifetime: .duration(.seconds(60)), tags: ["t"])
                try store.put(body(2000, key.count), for: Key(key), options)
            }
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                let other = try #require(try mutation.record(Array("sound".utf8)))
                let key = Array("k".utf8)
                var record = try #require(try mutation.record(key))
                (record.blob, record.id, record.stamp) = (other.blob, other.id, other.stamp)
                (record.expires, record.isPinned) = (other.expires, true)
                try mutation.transaction.put(store.engine.index.entries, key, record.bytes)
                mutation.noteChange(trees: 1)
            }
            if isRemoved { _ = try store.remove("k") } else { try store.put([1], for: "k") }
            try store.flush()
            try #expect(store.bytes("sound") == body(2000, 5))
            try #expect(store.keys(.tag("t")) == ["sound"])
            try #expect(store.attributes(of: "k")?.isPinned == (isRemoved ? nil : false))
            _ = try store.check(repair: true)
            try #expect(store.bytes("sound") == body(2000, 5))
        }
    }
}
