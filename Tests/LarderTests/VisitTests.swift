import LMDB
import TestSupport
import Testing

@testable import Larder

/// Entries that are looked at in place.
@Suite struct VisitTests {
    private static let kind = HeldKind<String>()

    /// What a visit gives, and which closure ran.
    private func visit(_ store: Store, _ key: Key, includingExpired: Bool = false) throws -> (Store.AtHand, String?) {
        var seen: String?
        let found = try store.visitAtHand(key, includingExpired: includingExpired, Self.kind) {
            metadata, body, length in
            guard case .bytes(let bytes) = body else { return }
            seen = "\(metadata.count) bytes of metadata, \(bytes.count) of \(length)"
        } held: { metadata, content in
            seen = "\(metadata.count) bytes of metadata, \(content.value) of \(content.length)"
        }
        return (found, seen)
    }

    @Test func oneSearchTellsWhereABodyIs() throws {
        try withStore(configuration: .testing { $0.inlineThreshold = .kibibytes(4) }) { store in
            try store.put(body(50), for: "embedded", PutOptions(metadata: [1]))
            try store.put(body(3_000), for: "inline", PutOptions(metadata: [1, 2]))
            try store.put(body(50_000), for: "file", PutOptions(metadata: [1, 2, 3]))
            try store.flush()
            try #expect(visit(store, "embedded") == (.visited, "1 bytes of metadata, 50 of 50"))
            try #expect(visit(store, "inline") == (.visited, "2 bytes of metadata, 3000 of 3000"))
            try #expect(visit(store, "file") == (.elsewhere, nil))
            for _ in 0..<2 { try #require(try store.get("file")).body.holdLater(Self.kind) { "\($0.byteCount) held" } }
            try blockWhile { try visit(store, "file").0 == .elsewhere }
            try #expect(visit(store, "file") == (.visited, "3 bytes of metadata, 50000 held of 50000"))
            try store.put(body(10), for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try #expect(visit(store, "memory") == (.elsewhere, nil))
        }
    }

    /// The length in the record says how much of the mapping a caller may take.
    @Test(arguments: [2_999, 3_001, UInt64.max]) func aLengthThatIsNotThatOfTheBytesIsNotBelieved(_ length: UInt64)
        throws
    {
        try withStore(configuration: .testing { $0.inlineThreshold = .kibibytes(4) }) { store in
            try store.put(body(3_000), for: "k", PutOptions(metadata: [1]))
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                let entries = store.engine.index.entries
                let raw = try #require(try mutation.reading.get(entries, Array("k".utf8)).map { Array($0) })
                try #require(raw[50..<58].elementsEqual(Self.bytes(3_000)))
                try mutation.transaction.put(entries, Array("k".utf8), raw[..<50] + Self.bytes(length) + raw[58...])
                mutation.noteChange(trees: 1)
            }
            try #expect(visit(store, "k") == (.elsewhere, nil))
            _ = try store.check(repair: true)
        }
    }

    private static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }

    @Test func whatWaitsForTheNextCommitIsAtHand() throws {
        try withStore(configuration: .holding) { store in
            for key: Key in ["replaced", "removed"] { try store.put(body(50), for: key) }
            try store.flush()
            let before = try store.statistics().counters
            try store.put(body(60), for: "replaced", PutOptions(metadata: [1]))
            try store.remove("removed")
            try store.put(body(70), for: "new", PutOptions(metadata: [1, 2]))
            try store.put(body(500_000), for: "file")
            try #expect(visit(store, "replaced") == (.visited, "1 bytes of metadata, 60 of 60"))
            try #expect(visit(store, "new") == (.visited, "2 bytes of metadata, 70 of 70"))
            for key: Key in ["removed", "file"] { try #expect(visit(store, key) == (.elsewhere, nil)) }
            let after = try store.statistics().counters
            #expect(after.hits - before.hits == 2 && after.misses == before.misses)
            try store.flush()
            try #expect(store.attributes(of: "new")?.hitCount == 1)
        }
    }

    @Test func whatExpiredBeforeItsCommitIsElsewhere() throws {
        let clock = TestClock()
        var configuration = Configuration.holding
        configuration.clock = clock
        try withStore(configuration: configuration) { store in
            try store.put(body(50), for: "k", PutOptions(lifetime: .duration(.seconds(1))))
            try #expect(visit(store, "k").0 == .visited)
            clock.advance(by: .seconds(2))
            try #expect(visit(store, "k") == (.elsewhere, nil))
            try #expect(visit(store, "k", includingExpired: true).0 == .visited)
        }
    }

    @Test func whatIsAbsentIsAMissAndCountsOnce() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put(body(50), for: "expired", PutOptions(lifetime: .duration(.seconds(1))))
            try store.put(body(50), for: "removed")
            try store.flush()
            try store.remove("removed")
            try store.flush()
            clock.advance(by: .seconds(2))
            let before = try store.statistics()
            for key: Key in ["none", "removed", "expired"] {
                try #expect(visit(store, key) == (.absent, nil))
            }
            let after = try store.statistics()
            #expect(after.counters.misses - before.counters.misses == 3 && after.counters.hits == before.counters.hits)
            try #expect(visit(store, "expired", includingExpired: true).0 == .visited)
        }
    }
}
