import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A pin that lasts as long as an entry: see `PinOwners`.
@Suite struct PinOwnerTests {
    private static let tag = "larder:group"
    private static let owner = Key("larder:owner")

    private func put(_ store: Store, _ count: Int, _ tags: [String] = [tag]) throws {
        for number in 0..<count {
            let options = PutOptions(tags: tags).withReservedNames
            try store.put(body(20_000, number), for: Key("member \(number)"), options)
        }
    }

    private func putOwner(_ store: Store) throws {
        try store.put([], for: Self.owner, PutOptions(tags: ["larder:records"]).withReservedNames)
    }

    private func press(_ store: Store, _ numbers: Range<Int> = 1_000..<1_400) throws {
        for number in numbers { try store.put(body(20_000, number), for: Key("\(number)")) }
    }

    private func members(_ store: Store) throws -> Int { try store.keys(.prefix("member ")).count }

    private var small: Configuration { .testing(budget: Budget(bytes: .mebibytes(4))) }

    @Test func holdsWhileThereIsAnOwnerThatStays() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: "larder:records")
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try putOwner(store)
            try put(store, 20)
            try press(store)
            try #expect(members(store) == 20)
            try #expect(store.pinnedTags() == [Self.tag, "larder:records"])
            try #expect(store.check().isClean)
        }
    }

    @Test func aReleasedOneGoesBeforeAllElse() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try put(store, 20)
            try putOwner(store)
            try press(store, 1_000..<1_150)
            let others = try store.keys(.all).count { $0.text.hasPrefix("1") }
            try store.remove(Self.owner)
            // The others stay until all members are gone, although they were used before them.
            for number in 2_000..<2_100 {
                try store.put(body(20_000, number), for: Key("\(number)"))
                let left = try store.keys(.all).count { $0.text.hasPrefix("1") }
                if try members(store) > 0 { #expect(left == others) }
            }
            try #expect(members(store) == 0)
            try #expect(store.pinnedTags() == [])
        }
    }

    /// All that a pin has kept is out of reach of a reader that asks for its owner first, before the first of it goes.
    @Test func displacementTakesTheOwnerFirst() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try putOwner(store)
            try put(store, 20)
            for number in 0..<400 {
                try store.put(body(20_000, number + 5_000), for: Key("\(number)"))
                let count = try members(store)
                if try store.peek(Self.owner) != nil { #expect(count == 20) }
            }
            try #expect(store.peek(Self.owner) == nil)
            try #expect(members(store) == 0)
        }
    }

    @Test func usingTheOwnerKeepsAll() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try putOwner(store)
            try put(store, 20)
            for number in 0..<400 {
                try store.put(body(20_000, number + 5_000), for: Key("\(number)"))
                try #expect(store.get(Self.owner) != nil)
            }
            try #expect(members(store) == 20)
        }
    }

    @Test func whatIsKeptOtherwiseStays() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try store.pin(tag: "also")
            try put(store, 5, [Self.tag, "also"])
            let tags = PutOptions(tags: [Self.tag]).withReservedNames
            var pinned = tags
            pinned.isPinned = true
            try store.put(body(20_000, 7), for: "member own", pinned)
            try store.put(body(20_000, 8), for: "member leased", tags)
            let lease = try store.lease("member leased", for: .seconds(3_600))
            try press(store)
            try #expect(members(store) == 7)
            lease.release()
            try press(store, 2_000..<2_400)
            try #expect(members(store) == 6)
            try #expect(store.pinnedTags().contains(Self.tag))
        }
    }

    /// A body that needs the room of what a pin has kept is not refused as one that can have no room.
    @Test func itsRoomCountsAsRoom() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try putOwner(store)
            try put(store, 130)
            try store.put(body(1_500_000, 9), for: "long")
            try #expect(store.contains("long"))
            try #expect(store.peek(Self.owner) == nil)
        }
    }

    @Test func outlivesARebuildOfTheIndex() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, small)
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try putOwner(store)
            try put(store, 10)
            try store.close()
            try Store.rebuildIndex(at: path, small)
            let rebuilt = try Store(at: path, small)
            try #expect(rebuilt.pinnedTags() == [Self.tag])
            try rebuilt.remove(Self.owner)
            try press(rebuilt)
            try #expect(members(rebuilt) == 0 && rebuilt.check().isClean)
            try rebuilt.close()
        }
    }

    @Test func unpinningEndsIt() throws {
        try withStore(configuration: small) { store in
            try store.pin(reservedTag: Self.tag, while: Self.owner)
            try put(store, 3)
            try store.unpin(reservedTag: Self.tag)
            try #expect(store.pinnedTags() == [])
            try #expect(store.check().isClean)
        }
    }
}
