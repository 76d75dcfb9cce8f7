import TestSupport
import Testing

@testable import Larder

/// Walks over selected entries end, and find what is selected all the time, whatever changes meanwhile.
@Suite struct WalkTests {
    private struct DoesNotEnd: Error {}

    private func removed(_ selection: Selection, from store: Store, within limit: Int) throws -> Int {
        try store.remove(selection) { if $0.examined > limit { throw DoesNotEnd() } }
    }

    // MARK: Hosts

    @Test func keysWithBytesThatNoHostHasAreLeftBehind() throws {
        try withStore { store in
            for beginning in ["http://", "https://"] {
                for byte: UInt8 in [0x61, 0x62, 0xFF] {
                    try store.put([1], for: Key(bytes: Array(beginning.utf8) + [0xFF, byte]))
                }
                for host in ["a.test", "b.test"] { try store.put([1], for: Key("\(beginning)\(host)/")) }
            }
            try #expect(removed(.host("a.test"), from: store, within: 1000) == 2)
            try #expect(removed(.host("b.test"), from: store, within: 1000) == 2)
            try #expect(removed(.host("\u{FF}"), from: store, within: 1000) == 0)
            try #expect(store.keys().count == 6)
        }
    }

    /// Of a key over 478 bytes the index has the first 478 in order.
    @Test(arguments: [470, 471, 472, 500]) func longHostsAreFound(_ length: Int) throws {
        try withStore { store in
            let host = String(repeating: "a", count: length)
            let keys = ["http://", "https://"].map { Key("\($0)\(host)/") }
            for key in keys + [Key("http://\(host)b/"), Key("http://\(host).test/")] { try store.put([1], for: key) }
            try #expect(store.keys(.host(host)) == keys)
            try #expect(store.remove(.host(host)) == 2)
        }
    }

    // MARK: Tags

    /// The index has the bytes of a tag; Unicode's equivalent forms are two tags.
    @Test func tagsAreComparedByTheirBytes() throws {
        try withStore { store in
            let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
            try store.put([1], for: "composed", PutOptions(tags: [composed]))
            try store.put([1], for: "decomposed", PutOptions(tags: [decomposed]))
            try store.put([1], for: "memory", PutOptions(storagePolicy: .memoryOnly, tags: [composed]))
            try #expect(Set(store.keys(.tag(composed))) == ["composed", "memory"])
            try #expect(Set(store.keys(.tag(composed) && .all)) == ["composed", "memory"])
            try #expect(store.keys(.tag(decomposed)) == ["decomposed"])
            try #expect(store.keys(.prefix("d") && .tag(composed)) == [])
            try #expect(store.keys(!.tag(composed)) == ["decomposed"])
            try #expect(store.keys(.tag(composed) || .tag(decomposed)).count == 3)
            try #expect(store.pin(tag: composed) == 2)
            try #expect(store.attributes(of: "decomposed")?.isPinned == false)
            // From one form to the other.
            try #expect(store.result { $0.change("composed", EntryChange(tags: [decomposed])) } == "done")
            try #expect(store.keys(.tag(composed)) == ["memory"])
            try #expect(store.keys(.tag(decomposed)) == ["composed", "decomposed"])
            try #expect(store.remove(.tag(decomposed)) == 2)
        }
    }

    @Test func aRemovalByTagEndsBesideAWriter() throws {
        try withStore { store in
            var count = 0
            func fill() throws {
                for _ in 0..<300 {
                    try store.put([1], for: Key("k\(count)"), PutOptions(tags: ["t"]))
                    count += 1
                }
                try store.flush()
            }
            try fill()
            let removed = try store.remove(.tag("t")) {
                if $0.examined > 3000 { throw DoesNotEnd() }
                try fill()
            }
            #expect(removed == 300)
        }
    }

    // MARK: Changes during a walk

    private func keys(
        _ selection: Selection, in store: Store, afterTheFirst change: () async throws -> Void
    ) async throws -> [Key] {
        var iterator = try store.entries(selection).makeAsyncIterator()
        var keys: [Key] = []
        try keys.append(#require(await iterator.next()).key)
        try await change()
        while let next = try await iterator.next() { keys.append(next.key) }
        return keys
    }

    @Test(arguments: [Selection.pinned, .pinned || .tag("t"), .tag("none") || .pinned])
    func whatIsPinnedIsListedThoughItIsUsed(_ selection: Selection) async throws {
        try await withStore { store in
            for number in 0..<300 {
                try await store.put([1], for: Key("k\(number)"), PutOptions(tags: ["t"], isPinned: true))
            }
            try await store.perform { try $0.flush() }
            let found = try await keys(selection, in: store) {
                // Some that the walk has seen, and some that it has not: a batch has 256 entries.
                for number in [0, 5, 260, 280, 299] { _ = try await store.get(Key("k\(number)")) }
                try await store.perform { try $0.flush() }
            }
            #expect(found.count == 300)
            #expect(Set(found).count == 300)
        }
    }

    @Test func whatMovesBetweenPartsIsListed() async throws {
        try await withStore { store in
            try await store.put([1], for: "moves", PutOptions(tags: ["b"]))
            for number in 0..<300 { try await store.put([1], for: Key("k\(number)"), PutOptions(tags: ["a"])) }
            try await store.put([1], for: "both", PutOptions(tags: ["a", "b"]))
            try await store.perform { try $0.flush() }
            let found = try await keys(.tag("a") || .tag("b"), in: store) {
                // Its row for `a` is where the walk has been.
                var batch = WriteBatch()
                batch.change("moves", EntryChange(tags: ["a", "b"]))
                try await store.write(batch)
            }
            #expect(found.count == 302)
            #expect(Set(found).count == 302)
        }
    }

    @Test func manyKeysAreWalkedInParts() throws {
        try withStore { store in
            let wanted = (0..<3000).map { Key("k\($0)") }
            for key in wanted where key.bytes.last != UInt8(ascii: "7") { try store.put([1], for: key) }
            try #expect(removed(.keys(Set(wanted)), from: store, within: 3000) == 2700)
            try #expect(store.keys() == [])
        }
    }
}
