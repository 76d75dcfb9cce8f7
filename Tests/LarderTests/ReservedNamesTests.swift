import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Keys and tags that begin with `larder:` are Larder's own: displacement and packages read them.
@Suite struct ReservedNamesTests {
    /// A tag of a caller's must not make displacement take what is pinned.
    @Test func whatIsPinnedStays() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(4)))) { store in
            for number in 0..<10 {
                try store.put(body(20_000, number), for: Key("pinned \(number)"), PutOptions(tags: ["t"]))
            }
            try store.pin(tag: "t")
            try #expect(
                code { try store.put([1], for: "lead", PutOptions(tags: ["larder:leads t"])) } == .invalidArgument)
            for number in 10..<400 { try store.put(body(20_000, number), for: Key("\(number)")) }
            for number in 0..<10 { try #expect(store.contains(Key("pinned \(number)")), "\(number)") }
        }
    }

    @Test func everyCallThatStoresRefusesThem() async throws {
        try await withStore { store in
            let file = try TestFiles.makeDirectory().appending("file")
            defer { TestFiles.remove(file.removingLastComponent()) }
            try TestFiles.write(body(10_000), to: file)
            try await store.put([1], for: "k")
            let entry = try #require(try await store.get("k"))
            let own = PutOptions(tags: ["a", "larder:x"])
            let calls: [(String, () async throws -> Void)] = [
                ("put", { try await store.put([1], for: "larder:k") }),
                ("put with a tag", { try await store.put([1], for: "k", own) }),
                (
                    "put in memory",
                    { try await store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly, tags: own.tags)) }
                ),
                ("writer", { _ = try store.writer(for: "larder:k") }),
                ("writer with a tag", { _ = try store.writer(for: "k", own) }),
                ("partial writer", { _ = try await store.perform { try $0.partialWriter(for: "larder:k") } }),
                ("adopt", { _ = try await store.perform { try $0.adopt(file, for: "k", own) } }),
                ("read through", { _ = try await store.value(for: "larder:k") { _ in Computed([1]) } }),
                ("pin", { _ = try await store.perform { try $0.pin(tag: "larder:x") } }),
                ("unpin", { _ = try await store.perform { try $0.unpin(tag: "larder:x") } }),
                ("lease", { _ = try await store.lease(tag: "larder:x") }),
            ]
            for (name, call) in calls {
                do {
                    try await call()
                    Issue.record("\(name) is not refused")
                } catch let error as LarderError {
                    #expect(error.code == .invalidArgument && error.message.contains("larder:"), "\(name): \(error)")
                }
            }
            var batch = WriteBatch()
            batch.put([1], for: "larder:k")
            batch.put([1], for: "k2", own)
            batch.update(entry, EntryChange(tags: own.tags))
            batch.lease(tag: "larder:x", for: .seconds(1))
            batch.put([2], for: "good", PutOptions(tags: ["larder", "Larder:x", " larder:x"]))
            let results = try await store.write(batch)
            for result in results.prefix(4) {
                guard case .failed(let error) = result else {
                    Issue.record("not refused: \(result)")
                    continue
                }
                #expect(error.code == .invalidArgument)
            }
            #expect(results[4].isSuccess)
            try await #expect(Set(store.listed()) == ["k", "good"])
        }
    }

    /// What an earlier version stored stays readable, and can be removed.
    @Test func whatIsThereStays() async throws {
        try await withStore { store in
            let options = PutOptions(tags: ["larder:x"]).withReservedNames
            for key in ["larder:a", "b"] as [Key] { try await store.put([1], for: key, options) }
            try await #expect(store.get("larder:a") != nil)
            try await #expect(store.touch("larder:a", lifetime: .duration(.seconds(9))))
            try await #expect(store.listed(.tag("larder:x")).count == 2)
            for key in ["larder:a", "b"] as [Key] { try await #expect(store.remove(key)) }
            // Remembered absence has a tag of Larder's own.
            try await #expect(store.value(for: "n") { _ in .nothing(for: .seconds(60)) } == nil)
            try await #expect(store.get("n")?.attributes.tags == [Computed.nothingTag])
        }
    }
}
