import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// `No-Vary-Search` (draft-ietf-httpbis-no-vary-search-10): one response for several queries.
struct SearchTests {
    private static let path = "http://example.org/a"

    private func answer(_ fixture: Fixture, _ body: String, _ variation: String?) {
        var fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"\(body)\""]
        fields[.noVarySearch] = variation
        fixture.answer(body, fields)
    }

    private func source(_ query: String, _ fixture: Fixture) async throws -> FetchResponse.Source {
        try await fixture.get(Self.path + query).response.source
    }

    @Test func queriesThatCountAsTheSameShareAResponse() async throws {
        try await Fixture.run { fixture in
            answer(fixture, "x", "params=(\"utm_source\" \"utm_medium\"), key-order")
            _ = try await fixture.get(Self.path + "?id=1&utm_source=a&p=2")
            for query in ["?p=2&id=1", "?id=1&p=2&utm_medium=b", "?id=1&p=%32&utm_source=c&", "?id=1&utm_source=a&p=2"]
            {
                try await #expect(source(query, fixture) == .hit, "\(query)")
            }
            for query in ["?id=2&p=2", "?id=1", "", "?id=1&p=2&q=3"] {
                try await #expect(source(query, fixture) == .network, "\(query)")
            }
        }
    }

    @Test func anotherPathAndOtherFieldsShareNothing() async throws {
        try await Fixture.run { fixture in
            answer(fixture, "x", "except=()")
            _ = try await fixture.get(Self.path + "?1")
            try await #expect(source("?2", fixture) == .hit)
            try await #expect(fixture.get("http://example.org/b?1").response.source == .network)
            fixture.answer("y", [.cacheControl: "max-age=60", .noVarySearch: "except=()", .vary: "Accept-Language"])
            let url = "http://example.org/c"
            _ = try await fixture.get(url + "?1", fields: [.acceptLanguage: "de"])
            try await #expect(fixture.get(url + "?2", fields: [.acceptLanguage: "de"]).response.source == .hit)
            try await #expect(fixture.get(url + "?3", fields: [.acceptLanguage: "fr"]).response.source == .network)
        }
    }

    @Test func staleOnesAreValidatedUnderAnyQuery() async throws {
        try await Fixture.run { fixture in
            answer(fixture, "x", "except=()")
            _ = try await fixture.get(Self.path + "?1")
            fixture.clock.advance(by: .seconds(100))
            fixture.transport.handler = { request throws(TransportError) in
                #expect(request.head.path == "/a?2" && request.head.headerFields[.ifNoneMatch] == "\"x\"")
                return .answer(304, [.eTag: "\"x\"", .cacheControl: "max-age=60"])
            }
            try await #expect(source("?2", fixture) == .revalidated)
            try await #expect(source("?3", fixture) == .hit)
            // With another variation it is found elsewhere, or not at all.
            fixture.clock.advance(by: .seconds(100))
            fixture.transport.handler = { _ throws(TransportError) in
                .answer(304, [.eTag: "\"x\"", .cacheControl: "max-age=60", .noVarySearch: "key-order"])
            }
            try await #expect(source("?4", fixture) == .revalidated)
            answer(fixture, "y", nil)
            try await #expect(source("?4", fixture) == .network)
            try await #expect(source("?5", fixture) == .network)
            try await #expect(source("?4", fixture) == .hit)
        }
    }

    /// Everything that may have answered a URL goes with it.
    @Test(arguments: ["POST", "purge", "prefix"]) func invalidationFindsThem(_ way: String) async throws {
        try await Fixture.run { fixture in
            answer(fixture, "x", "params=(\"u\")")
            _ = try await fixture.get(Self.path + "?id=1&u=1")
            _ = try await fixture.get(Self.path + "?id=2&u=1")
            answer(fixture, "x", "params=(\"u\"), key-order")
            _ = try await fixture.get(Self.path + "?id=1&v=2&u=3")
            switch way {
            case "POST":
                let post = try HTTPCache.request(for: Self.path + "?id=1&u=7", method: .post)
                _ = try await fixture.cache.fetch(post, body: RequestBody([1])).body.bytes()
            case "purge": try await #expect(fixture.cache.purge(Self.path + "?id=1&u=7") == 1)
            default: _ = try await fixture.cache.purge(prefix: Self.path + "?id=1")
            }
            try await #expect(source("?id=1&u=9", fixture) == .network)
            let isPrefix = way == "prefix"
            try await #expect(source("?id=2&u=9", fixture) == (isPrefix ? .network : .hit))
            try await #expect(source("?v=2&id=1", fixture) == (isPrefix ? .network : .hit))
        }
    }

    /// A response that was asked for before an invalidation of what it may answer is not stored.
    @Test func oneThatWasUnderWayIsNotStored() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { request throws(TransportError) in
                if request.head.method == .get { await gate.wait() }
                return .answer(200, [.cacheControl: "max-age=60", .noVarySearch: "except=()"], "old")
            }
            async let first = fixture.get(Self.path + "?1")
            await fixture.transport.waitForRequests()
            let post = try HTTPCache.request(for: Self.path + "?2", method: .post)
            _ = try await fixture.cache.fetch(post, body: RequestBody([1])).body.bytes()
            gate.open()
            _ = try await first
            try await #expect(source("?3", fixture) == .network)
        }
    }

    /// The list of a path is short; what falls out of it is gone, not only out of sight.
    @Test func manyVariationsOfOnePath() async throws {
        try await Fixture.run { fixture in
            for number in 0..<6 {
                answer(fixture, "\(number)", "params=(\"u\(number)\")")
                _ = try await fixture.get(Self.path + "?id=\(number)&u\(number)=1")
            }
            answer(fixture, "new", nil)
            for number in 0..<6 {
                try await #expect(source("?id=\(number)&u\(number)=2", fixture) == (number < 2 ? .network : .hit))
            }
        }
    }

    @Test func notWithKeysOfTheCallersOwn() async throws {
        try await Fixture.run({ $0.keyPolicy.addedText = "1" }) { fixture in
            answer(fixture, "x", "except=()")
            _ = try await fixture.get(Self.path + "?1")
            try await #expect(source("?2", fixture) == .network)
        }
    }
}
