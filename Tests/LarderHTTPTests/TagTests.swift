import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// Every tag of a stored response purges it.
struct TagTests {
    private static let tagField = HTTPField.Name("Surrogate-Key")!
    private static let groupField = HTTPField.Name("Cache-Groups")!

    private func answer(_ fields: HTTPFields, status: HTTPResponse.Status = .ok) -> TransportResponse {
        var all: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]
        all.append(contentsOf: fields)
        return .answer(status.code, all, status == .ok ? "hello" : "")
    }

    @Test(arguments: [1, 64, 65, 500, 4_096]) func eachOfManyPurgesIt(_ count: Int) async throws {
        try await Fixture.run { fixture in
            // In several fields, and with commas and blanks.
            let tags = (0..<count).map { "p\($0)" }
            var fields = HTTPFields()
            for start in stride(from: 0, to: count, by: 50) {
                let separator = start % 100 == 0 ? " " : ","
                let value = tags[start..<min(count, start + 50)].joined(separator: separator)
                fields.append(HTTPField(name: Self.tagField, value: value))
            }
            fixture.transport.handler = { [fields] _ throws(TransportError) in answer(fields) }
            for tag in [0, count / 2, count - 1].map({ "p\($0)" }) {
                _ = try await fixture.get()
                try await #expect(fixture.get().response.source == .hit)
                try await #expect(fixture.cache.purge(tag: tag) == 1)
                try await #expect(fixture.get().response.source == .network)
            }
        }
    }

    @Test(arguments: [
        (0..<4_097).map { "\($0)" }.joined(separator: " "),
        (1_000..<1_200).map { "\($0)" + String(repeating: "x", count: 190) }.joined(separator: ","),
    ])
    func whatCannotHaveAllOfItsTagsIsNotStored(_ value: String) async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in answer([Self.tagField: value]) }
            for _ in 0..<2 {
                let (response, text) = try await fixture.get()
                #expect(response.source == .network && text == "hello")
            }
            try await #expect(fixture.cache.purge(tag: "1000") == 0)
        }
    }

    @Test func ofAnyLength() async throws {
        try await Fixture.run { fixture in
            let long = String(repeating: "long", count: 100)
            let group = String(repeating: "group", count: 100)
            fixture.transport.handler = { _ throws(TransportError) in
                answer([Self.tagField: "a \(long)1 \(long)2", Self.groupField: "\"\(group)1\", \"\(group)2\""])
            }
            _ = try await fixture.get()
            try await #expect(fixture.cache.purge(tag: long + "3") == 0)
            try await #expect(fixture.cache.purge(tag: long + "2") == 1)
            _ = try await fixture.get()
            try await #expect(fixture.cache.purge(group: group + "2", origin: "http://example.org") == 1)
        }
    }

    @Test func ofManyGroups() async throws {
        try await Fixture.run { fixture in
            let groups = (0..<300).map { "\"g\($0)\"" }.joined(separator: ", ")
            fixture.transport.handler = { _ throws(TransportError) in answer([Self.groupField: groups]) }
            _ = try await fixture.get()
            try await #expect(fixture.cache.purge(group: "g299", origin: "http://example.org") == 1)
        }
    }

    /// RFC 9111 section 3.2: the fields of a 304 replace those of the stored response.
    @Test(arguments: [StoragePolicy.permanent, .memoryOnly])
    func thoseOfAnUpdateReplaceTheOlder(_ policy: StoragePolicy) async throws {
        try await Fixture.run { fixture in
            let options = FetchOptions(storagePolicy: policy, tags: ["mine"])
            fixture.transport.handler = { request throws(TransportError) in
                request.head.headerFields[.ifNoneMatch] == nil
                    ? answer([Self.tagField: "old both"]) : answer([Self.tagField: "new both"], status: .notModified)
            }
            // A response in memory is removed, as its tags cannot be changed, and asked for again.
            let hasNew = policy == .permanent ? 1 : 0
            for (tag, count) in [("old", 1 - hasNew), ("new", hasNew), ("both", 1), ("mine", 1)] {
                _ = try await fixture.get(Fixture.url, options)
                fixture.clock.advance(by: .seconds(90))
                try await #expect(fixture.get(Fixture.url, options).text == "hello")
                await fixture.cache.drain()
                let found = try await fixture.get(Fixture.url, options).response.source
                #expect(found == .hit || policy == .memoryOnly)
                try await #expect(fixture.cache.purge(tag: tag) == count, "\(tag)")
                _ = try await fixture.cache.purge(Fixture.url)
            }
        }
    }

    @Test func anUpdateWithTooManyRemovesTheResponse() async throws {
        try await Fixture.run { fixture in
            let many = (0..<5_000).map { "t\($0)" }.joined(separator: " ")
            fixture.transport.handler = { request throws(TransportError) in
                request.head.headerFields[.ifNoneMatch] == nil
                    ? answer([Self.tagField: "few"]) : answer([Self.tagField: many], status: .notModified)
            }
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(90))
            try await #expect(fixture.get().text == "hello")
            await fixture.cache.drain()
            try await #expect(fixture.get().response.source == .network)
        }
    }

    /// The parts of a response have its tags.
    @Test func partsGetThoseOfAnUpdate() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let fields: HTTPFields = [
                    .cacheControl: "max-age=60", .eTag: "\"1\"", .contentRange: "bytes 0-4/10", Self.tagField: "old",
                ]
                if request.head.headerFields[.ifNoneMatch] != nil {
                    return answer([Self.tagField: "new"], status: .notModified)
                }
                return .answer(206, fields, "01234")
            }
            _ = try await fixture.get(fields: [.range: "bytes=0-4"])
            fixture.clock.advance(by: .seconds(90))
            try await #expect(fixture.get(fields: [.range: "bytes=0-4"]).text == "01234")
            await fixture.cache.drain()
            try await #expect(
                fixture.store.listed(.tag("new")).count
                    == fixture.store.listed().count)
            try await #expect(fixture.cache.purge(tag: "new") >= 1)
            try await #expect(fixture.store.listed().isEmpty)
        }
    }
}
