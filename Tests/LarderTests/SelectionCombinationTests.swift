import Foundation
import TestSupport
import Testing

@testable import Larder

/// Selections that are combined select what their parts say, whichever index leads to the entries.
@Suite struct SelectionCombinationTests {
    private static let hosts = ["a.test", "b.test", "a.test.org"]
    private static let beginnings = ["http://", "https://", "QUERY https://", "gopher://", "urn:x:", "z"]

    /// Entries of every kind, in memory, pending and committed.
    private func fill(_ store: Store, _ clock: TestClock, _ generator: inout SeededGenerator) throws {
        try store.pin(tag: "kept")
        for number in 0..<240 {
            let beginning = Self.beginnings.randomElement(using: &generator)!
            let host = Self.hosts.randomElement(using: &generator)!
            let tags = ["t", "u", "kept"].filter { _ in Int.random(in: 0..<4, using: &generator) == 0 }
            let lifetime: Lifetime = Bool.random(using: &generator) ? .never : .duration(.seconds(number))
            let policy: StoragePolicy = [.permanent, .permanent, .session, .memoryOnly].randomElement(
                using: &generator)!
            let isPinned = Int.random(in: 0..<5, using: &generator) == 0
            try store.put(
                body(Int.random(in: 0..<40, using: &generator)), for: Key("\(beginning)\(host)/\(number)"),
                PutOptions(lifetime: lifetime, storagePolicy: policy, tags: tags, isPinned: isPinned))
            clock.advance(by: .seconds(1))
        }
    }

    private func randomSelection(
        _ depth: Int, _ entries: [Attributes], _ generator: inout SeededGenerator
    ) -> (Selection, (Attributes) -> Bool) {
        let some = entries.randomElement(using: &generator)!
        if depth > 0 {
            let (left, isLeft) = randomSelection(depth - 1, entries, &generator)
            let (right, isRight) = randomSelection(depth - 1, entries, &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: return (left && right, { isLeft($0) && isRight($0) })
            case 1: return (left || right, { isLeft($0) || isRight($0) })
            default: return (!left, { !isLeft($0) })
            }
        }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: return (.all, { _ in true })
        case 1:
            let keys = Set(entries.prefix(30).map(\.key) + ["none"])
            return (.keys(keys), { keys.contains($0.key) })
        case 2:
            let prefix = String(some.key.text.prefix(Int.random(in: 0..<14, using: &generator)))
            return (.prefix(Key(prefix)), { $0.key.text.hasPrefix(prefix) })
        case 3: return (.host("A.test"), { $0.key.text.contains("://a.test/") })
        case 4:
            let tag = ["t", "u", "kept", "none"].randomElement(using: &generator)!
            return (.tag(tag), { $0.tags.contains(tag) })
        case 5:
            let policy = some.storagePolicy
            return (.policy(policy), { $0.storagePolicy == policy })
        case 6: return (.pinned, { $0.isPinned })
        case 7:
            let now = entries.map(\.stored).max()! + .seconds(1)
            return (.expired, { !$0.isPinned && ($0.expires.map { $0 <= now } ?? false) })
        case 8: return (.atLeast(20), { $0.length >= 20 })
        case 9:
            let moment = some.stored
            return (.storedSince(moment), { $0.stored >= moment })
        case 10:
            let moment = some.lastAccess
            return (.unusedSince(moment), { $0.lastAccess < moment })
        default:
            let digest = some.digest
            return (.content(digest), { $0.digest == digest })
        }
    }

    @Test(arguments: [1, 2, 3]) func anySelectionSelectsWhatItSays(_ depth: Int) throws {
        let seed = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap(UInt64.init) ?? .random(in: 0..<1_000_000)
        print("anySelectionSelectsWhatItSays: LARDER_SEED=\(seed)")
        var generator = SeededGenerator(seed: seed)
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try fill(store, clock, &generator)
            let entries = try Array(store.attributesOfAll())
            #expect(entries.count == 240)
            for _ in 0..<150 {
                let (selection, isSelected) = randomSelection(depth, entries, &generator)
                let found = try store.keys(selection)
                let expected = entries.filter(isSelected).map(\.key)
                #expect(found.count == Set(found).count, "seed \(seed): \(selection)")
                #expect(Set(found) == Set(expected), "seed \(seed): \(selection)")
            }
            // What is removed is what is listed.
            let (selection, isSelected) = randomSelection(depth, entries, &generator)
            let doomed = entries.filter(isSelected)
            try #expect(store.remove(selection) == doomed.count)
            try #expect(store.keys().count == 240 - doomed.count)
        }
    }

    // MARK: Where an index leads to the entries

    private func examined(_ selection: Selection, in store: Store) throws -> Int {
        var examined = 0
        _ = try store.remove(selection) { examined = $0.examined }
        return examined
    }

    @Test func theNarrowestIndexIsUsed() throws {
        try withStore { store in
            for number in 0..<1000 {
                let isTenth = number % 10 == 0
                try store.put(
                    [1], for: Key("http://host\(number % 4).test/\(number)"),
                    PutOptions(tags: isTenth ? ["tenth"] : [], isPinned: number % 50 == 0))
            }
            try store.flush()
            let none = Selection.atLeast(1000)
            let cases: [(Selection, ClosedRange<Int>)] = [
                (none, 1000...1000), (.tag("tenth") && none, 100...100),
                (none && .tag("tenth") && .prefix("http"), 100...100),
                (.prefix("http://host1") && none, 250...250), (.pinned && none, 20...20),
                (.host("host2.test") && none, 250...252), (.keys(["a", "b"]) && .tag("tenth") && none, 2...2),
                ((.tag("tenth") && none) || (.pinned && none), 120...120), (!.tag("tenth") && none, 1000...1000),
                ((.tag("tenth") || .pinned) && none, 1000...1000), (.host("none.test"), 1...4),
            ]
            for (selection, range) in cases {
                let count = try examined(selection, in: store)
                #expect(range.contains(count), "\(selection): \(count)")
            }
            try #expect(store.statistics().entryCount == 1000)
        }
    }

    @Test func hostsHaveAnySchemeAndWhatStandsBeforeIt() throws {
        try withStore { store in
            let keys = [
                "GET https://a.test/", "QUERY https://a.test/q", "QUERY https://aa.test/", "gopher://a.test",
                "https://a.test:99/",
                "x-y+z.1://a.test#f",
            ]
            let others = ["a.test", "http:a.test", "https://b.test/?u=https://a.test/", "https://user@a.test/", "://"]
            for key in keys + others { try store.put([1], for: Key(key)) }
            try #expect(store.keys(.host("a.test")).map(\.text) == keys.filter { !$0.contains("aa.test") })
            try #expect(store.keys(.host("")) == ["://"])
        }
    }

    // MARK: Application versions

    @Test func aSelectionThatNamesVersionsIsNotLimitedToTheStoresOwn() throws {
        try withDirectory { path in
            let one = try Store(at: path, .testing { $0.version = "1" })
            let two = try Store(at: path, .testing { $0.version = "2" })
            for number in 0..<4 {
                try one.put([1], for: Key("one\(number)"), PutOptions(tags: number < 2 ? ["t"] : []))
                try two.put([2], for: Key("two\(number)"), PutOptions(tags: number < 2 ? ["t"] : []))
            }
            try one.flush()
            try two.flush()
            try #expect(one.keys(.tag("t")) == ["one0", "one1"])
            try #expect(one.keys(!.tag("t")) == ["one2", "one3"])
            try #expect(one.keys(.tag("t") && .otherVersions) == ["two0", "two1"])
            try #expect(one.keys(.version("2") && !.tag("t")) == ["two2", "two3"])
            try #expect(one.keys(.version("1")) == one.keys())
            try #expect(one.keys(.version("none")) == [])
            try #expect(one.keys(.version("1") || .version("2")).count == 8)
            try #expect(one.remove(.otherVersions && .tag("t")) == 2)
            try one.close()
            try finish(two)
        }
    }
}

extension Store {
    fileprivate func attributesOfAll() throws -> [Attributes] {
        var found: [Attributes] = []
        try forEach { found.append($0) }
        return found
    }
}
