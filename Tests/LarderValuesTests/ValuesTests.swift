import Foundation
import Larder
import LarderValues
import Locks
import TestSupport
import Testing

private struct Feed: Codable, Equatable, Sendable {
    var title: String
    var items: [String]
}

private let feed = Feed(title: "Larder", items: ["a", "b"])

/// Counts what it decodes; a value is the text after a `+`.
private struct CountingCodec: ValueCodec, Hashable {
    struct NoPlus: Error {}

    final class Count: Sendable, Hashable {
        let decoded = Atomic<Int>(0)
        static func == (one: Count, other: Count) -> Bool { one === other }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    let count = Count()
    var costs: Int?

    func encode(_ value: String) throws -> [UInt8] {
        if value.isEmpty { throw NoPlus() }
        return Array("+\(value)".utf8)
    }

    func decode(_ bytes: RawSpan) throws -> String {
        count.decoded.add(1, ordering: .relaxed)
        let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard text.hasPrefix("+") else { throw NoPlus() }
        return String(text.dropFirst())
    }

    func cost(of value: String, length: Int) -> Int { costs ?? length }

    var decoded: Int { count.decoded.load(ordering: .relaxed) }
}

/// Entries as values of a type.
@Suite struct ValuesTests {
    @Test func valuesAreStoredInEachForm() throws {
        try withStore { store in
            try store.values(of: Feed.self).put(feed, for: "json")
            try store.values(of: Feed.self, codec: .propertyList()).put(feed, for: "plist")
            try store.values(of: [UInt8].self, codec: .bytes).put([1, 2], for: "bytes")
            try #expect(store.values(of: Feed.self, codec: .json()).get("json") == feed)
            try #expect(store.values(of: Feed.self, codec: .propertyList()).get("plist") == feed)
            try #expect(store.values(of: [UInt8].self, codec: .bytes).get("bytes") == [1, 2])
            try #expect(store.values(of: Feed.self).get("none") == nil)
            let body = try #require(try store.get("json")?.body.bytes())
            #expect(try JSONDecoder().decode(Feed.self, from: Data(body)) == feed)
            try #expect(store.get("plist")?.body.bytes().starts(with: Array("bplist".utf8)) == true)
        }
    }

    /// What is not held is not taken for a value that is nil.
    @Test func aValueMayBeOptional() throws {
        try withStore { store in
            try store.values(of: Int?.self).put(5, for: "k")
            try store.flush()
            for _ in 0..<3 { try #expect(store.values(of: Int?.self).get("k") == .some(5)) }
        }
    }

    @Test func settingsOfCodersAreUsed() throws {
        try withStore { store in
            let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
            encoder.keyEncodingStrategy = .convertToSnakeCase
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            struct Person: Codable, Equatable, Sendable { var firstName: String }
            let codec = JSONCodec<Person>(encoder: encoder, decoder: decoder)
            #expect(codec == codec && codec != JSONCodec())
            try store.values(of: Person.self, codec: codec).put(Person(firstName: "A"), for: "k")
            try #expect(store.get("k")?.body.bytes() == Array(#"{"first_name":"A"}"#.utf8))
            try #expect(store.values(of: Person.self, codec: codec).get("k") == Person(firstName: "A"))
            try #expect(store.values(of: Person.self).get("k") == nil, "another codec does not see its values")
        }
    }

    /// Of 100 B in a record, 3 kB in the index, and 100 kB in a file.
    @Test(arguments: [100, 3_000, 100_000]) func aValueIsDecodedOnce(_ length: Int) throws {
        let configuration = Configuration.testing { $0.embeddingThreshold = 512 }
        try withStore(configuration: configuration) { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            let text = String(repeating: "x", count: length)
            try values.put(text, for: "k")
            try store.flush()
            for _ in 0..<5 { try #expect(values.get("k") == text) }
            #expect(values.codec.decoded == 1)
            // The same codec on another handle of the store.
            let other = try Store(at: store.path, configuration)
            try #expect(other.values(of: String.self, codec: values.codec).get("k") == text)
            try other.close()
            // Under another key the body is the same.
            try values.put(text, for: "k2")
            try store.flush()
            try #expect(values.get("k2") == text)
            #expect(values.codec.decoded == 1)
            let counters = try store.statistics().counters
            #expect(counters.hits == 7 && counters.misses == 0)
            let tier = try store.statistics().memoryTier
            #expect(tier.hits == 6 && tier.misses == 1)
        }
    }

    @Test func codecsThatAreNotEqualDoNotShare() throws {
        struct Plain: ValueCodec {
            let prefix: String
            func encode(_ value: String) -> [UInt8] { Array(value.utf8) }
            func decode(_ bytes: RawSpan) -> String {
                prefix + bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            }
        }
        try withStore { store in
            let one = store.values(of: String.self, codec: Plain(prefix: "1"))
            let two = store.values(of: String.self, codec: Plain(prefix: "2"))
            try one.put("x", for: "k")
            try store.flush()
            for _ in 0..<2 { try #expect(one.get("k") == "1x" && two.get("k") == "2x") }
        }
    }

    @Test func whatIsReplacedRemovedOrExpiredIsNoValue() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            for policy in StoragePolicy.allCases {
                try values.put("one", for: "k", PutOptions(lifetime: .duration(.seconds(5)), storagePolicy: policy))
                if policy == .permanent { try store.flush() }
                for _ in 0..<2 { try #expect(values.get("k") == "one") }
                try values.put("two", for: "k", PutOptions(lifetime: .duration(.seconds(5)), storagePolicy: policy))
                try #expect(values.get("k") == "two")
                clock.advance(by: .seconds(6))
                try #expect(values.get("k") == nil)
                try values.put("two", for: "k", PutOptions(storagePolicy: policy))
                try #expect(values.get("k") == "two")
                try store.remove("k")
                try #expect(values.get("k") == nil)
            }
        }
    }

    @Test func aValueOfMuchCostIsDecodedEachTime() throws {
        try withStore(configuration: .testing { $0.memoryLimit = .mebibytes(1) }) { store in
            let large = store.values(of: String.self, codec: CountingCodec(costs: 300_000))
            let most = store.values(of: String.self, codec: CountingCodec(costs: .max))
            let none = store.values(of: String.self, codec: CountingCodec(costs: -5))
            try large.put("x", for: "k")
            try store.flush()
            for values in [large, most, none] { for _ in 0..<3 { try #expect(values.get("k") == "x") } }
            #expect(large.codec.decoded == 3 && most.codec.decoded == 3 && none.codec.decoded == 1)
        }
    }

    @Test func aBodyThatIsNoValueIsAMissThatSaysWhy() async throws {
        try await withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            try await store.put(Array("no plus".utf8), for: "k")
            try await #expect(values.get("k") == nil)
            let result = try await values.result(for: "k")
            guard case .failure(let error) = result else {
                Issue.record("\(String(describing: result))")
                return
            }
            #expect(error is CountingCodec.NoPlus)
            try await #expect(values.result(for: "none") == nil)
            try await values.put("x", for: "k")
            try await #expect(values.result(for: "k")?.get() == "x")
            // A value that has no body leaves what is there.
            await #expect(throws: CountingCodec.NoPlus.self) { try await values.put("", for: "k") }
            try await #expect(values.get("k") == "x")
        }
    }

    /// A byte of a file has changed to one that can be decoded as well.
    @Test func whatADamagedFileIsDecodedToIsNotKept() throws {
        try withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            let text = String(repeating: "x", count: 50_000)
            try values.put(text, for: "k")
            try store.flush()
            let digest = try #require(try store.get("k")).digest
            let name = "\(digest)"
            let file = try #require(
                FileManager.default.subpaths(atPath: store.path.string)?.first { $0.hasSuffix(name.dropFirst(4)) })
            try TestFiles.flipByte(of: store.path.appending(file), at: 100)
            try #expect(values.get("k") != text)
            _ = try store.check(repair: true)
            try values.put(text, for: "k")
            try store.flush()
            try #expect(values.get("k") == text)
        }
    }
}

/// Values that are computed.
@Suite struct ComputedValueTests {
    @Test func aValueIsComputedAndDecodedOnceForAllCallers() async throws {
        try await withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            let computed = Counter()
            let gate = Latch()
            try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        try await values.value(for: "k") { _ in
                            computed.add(1)
                            await gate.wait()
                            return ComputedValue("x", PutOptions(tags: ["t"]))
                        }
                    }
                }
                gate.open()
                for try await value in group { #expect(value == "x") }
            }
            #expect(computed.value == 1 && values.codec.decoded == 1)
            try await #expect(store.get("k")?.attributes.tags == ["t"])
        }
    }

    @Test func nothingIsRememberedForAWhile() async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            let computed = Counter()
            func ask() async throws -> String? {
                try await values.value(for: "k") { _ in
                    computed.add(1)
                    return .nothing(for: .seconds(5))
                }
            }
            for _ in 0..<2 { try await #expect(ask() == nil) }
            try await #expect(values.get("k") == nil)
            #expect(computed.value == 1)
            clock.advance(by: .seconds(6))
            try await #expect(ask() == nil)
            #expect(computed.value == 2)
        }
    }

    /// A key that stands for nothing has an empty body, as a value may have.
    @Test func nothingIsNotAnEmptyValue() async throws {
        try await withStore { store in
            let values = store.values(of: [UInt8].self, codec: .bytes)
            try await #expect(values.value(for: "nothing") { _ in .nothing(for: .seconds(60)) } == nil)
            try await values.put([], for: "empty")
            try await store.perform { try $0.flush() }
            for _ in 0..<2 {
                try await #expect(values.get("empty") == [])
                try await #expect(values.get("nothing") == nil)
                try await #expect(values.result(for: "nothing") == nil)
                try await #expect(values.value(for: "nothing") { _ in ComputedValue([1]) } == nil)
            }
        }
    }

    @Test(arguments: [Duration.seconds(60), .seconds(9_000_000_000)])
    func aStaleBodyThatIsNoValueIsComputedAgain(_ staleFor: Duration) async throws {
        try await withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            try await store.put(Array("no plus".utf8), for: "k")
            let options = ReadThroughOptions(staleFor: staleFor)
            try await #expect(values.value(for: "k", options) { _ in ComputedValue("x") } == "x")
        }
    }

    @Test func aBodyThatIsNoValueIsComputedAgain() async throws {
        try await withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            try await store.put(Array("no plus".utf8), for: "k")
            try await store.pin("k")
            try await #expect(values.value(for: "k") { _ in ComputedValue("x") } == "x")
            try await #expect(values.get("k") == "x")
            try await #expect(store.get("k")?.attributes.isPinned == true)
        }
    }

    @Test func anErrorOfTheCodecGoesToTheCaller() async throws {
        try await withStore { store in
            let values = store.values(of: String.self, codec: CountingCodec())
            await #expect(throws: CountingCodec.NoPlus.self) {
                try await values.value(for: "k") { _ in ComputedValue("") }
            }
            try await #expect(values.value(for: "k") { _ in ComputedValue("x") } == "x")
        }
    }
}
