import TestSupport
import Testing

@testable import Larder

/// Uses that are noted while earlier ones are being committed.
@Suite struct TouchRaceTests {
    /// A reader has found the entry before a commit of touches moved it, and notes its use after that.
    @Test func aUseNotedByAnOldStampCounts() throws {
        try withStore { store in
            let engine = store.engine
            let buffer = try #require(engine.writing?.touchBuffer)
            func stamp(_ key: String) throws -> UInt64 {
                try engine.read { try #require(try engine.context.index.entry(Array(key.utf8), $0)).stamp }
            }
            func note(_ stamp: UInt64) {
                let hit = Counters.Hit(1, isCounted: true)
                buffer.note(stamp: stamp, uptime: SystemClock().uptime(), hit, engine.counters)
            }
            for key in ["a", "b", "c"] { try store.put([1], for: Key(key)) }
            try store.flush()
            let old = try stamp("a")
            for key in ["a", "b", "c"] { _ = try store.get(Key(key)) }
            try store.flush()
            try #expect(stamp("a") != old)
            // Of the same entry by both stamps: one touch with both uses.
            note(old)
            _ = try store.get("a")
            try store.flush()
            try #expect(store.attributes(of: "a")?.hitCount == 3)
            // It is the last to go.
            try store.setBudget(Budget(entries: 1))
            try #expect(store.keys() == ["a"])
        }
    }
    /// One commit moves the entry twice, as a part of it looks the entry up, and another one again.
    @Test func aUseCountsThoughTheEntryHasMovedSeveralTimes() throws {
        try withStore { store in
            let engine = store.engine
            let buffer = try #require(engine.writing?.touchBuffer)
            func stamp() throws -> UInt64 {
                try engine.read { try #require(try engine.context.index.entry(Array("k".utf8), $0)).stamp }
            }
            try store.put([1], for: "k")
            try store.flush()
            let old = try stamp()
            for _ in 0..<3 {
                _ = try store.get("k")
                var batch = WriteBatch()
                batch.put([2], for: "k", unlessPresent: true)
                try store.write(batch).throwIfFailed()
                _ = try store.get("k")
                try store.flush()
            }
            let hits = try #require(try store.attributes(of: "k")?.hitCount)
            let hit = Counters.Hit(1, isCounted: true)
            buffer.note(stamp: old, uptime: SystemClock().uptime(), hit, engine.counters)
            try store.flush()
            try #expect(store.attributes(of: "k")?.hitCount == hits + 1)
        }
    }
}
