import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// QUERY (RFC 10008): safe, cacheable, and told apart by content.
struct QueryTests {
    private func query(
        _ text: String, type: String = "text/plain", streamed: Bool = false, fields: HTTPFields = [:],
        _ fixture: Fixture
    ) async throws -> (source: FetchResponse.Source, status: Int, text: String) {
        var request = try HTTPCache.request(for: Fixture.url, method: HTTPRequest.Method("QUERY")!)
        request.headerFields = fields
        request.headerFields[.contentType] = type
        let pieces = Pieces([Array(text.utf8)].filter { !$0.isEmpty })
        let body =
            streamed ? RequestBody(length: nil) { try pieces.next() } : RequestBody(Array(text.utf8))
        let response = try await fixture.cache.fetch(request, body: body)
        let content = String(decoding: try await response.body.bytes(), as: UTF8.self)
        return (response.source, response.head.status.code, content)
    }

    /// An origin that answers with the content of the query.
    private func echo(_ fixture: Fixture, _ fields: HTTPFields = [.cacheControl: "max-age=60"]) {
        fixture.transport.handler = { request throws(TransportError) in
            var text = ""
            if let pull = request.body?.makePull() {
                do {
                    while let piece = try await pull() { text += String(decoding: piece, as: UTF8.self) }
                } catch {
                    throw TransportError(.requestBodyFailed, mayHaveBeenSeen: true, "\(error)")
                }
            }
            return .answer(200, fields, "\(request.head.method.rawValue) \(text)")
        }
    }

    @Test(arguments: [false, true]) func oneQueryIsNeverAnsweredForAnother(_ streamed: Bool) async throws {
        try await Fixture.run { fixture in
            echo(fixture)
            for text in ["a", "b", "", "a b"] {
                let first = try await query(text, streamed: streamed, fixture)
                #expect(first.source == .network && first.text == "QUERY \(text)")
                let second = try await query(text, streamed: streamed, fixture)
                #expect(second.source == .hit && second.text == "QUERY \(text)")
            }
            // The same bytes as something else are another query.
            try await #expect(query("a", type: "application/sql", fixture).source == .network)
            try await #expect(query("a", fields: [.contentEncoding: "gzip"], fixture).source == .network)
            try await #expect(query("a", fields: [.contentLanguage: "de"], fixture).source == .network)
            // How the content came makes no difference.
            try await #expect(query("a", streamed: !streamed, fixture).source == .hit)
            // And GET is another method.
            fixture.answer("got")
            try await #expect(fixture.get().text == "got")
            try await #expect(query("a", fixture).text == "QUERY a")
        }
    }

    @Test func longContentIsPassedOn() async throws {
        try await Fixture.run({ $0.queryContentLimit = 10 }) { fixture in
            echo(fixture)
            let text = String(repeating: "x", count: 11)
            for streamed in [true, false] {
                for isFirst in [true, false] {
                    let answer = try await query(text, streamed: streamed, fixture)
                    #expect(answer.text == "QUERY \(text)")
                    // Content that is in memory already has no limit.
                    #expect(answer.source == (streamed || isFirst ? .network : .hit))
                }
            }
            try await #expect(query("short", streamed: true, fixture).source == .network)
            try await #expect(query("short", streamed: true, fixture).source == .hit)
        }
    }

    @Test func conditionsAndValidation() async throws {
        try await Fixture.run { fixture in
            echo(fixture, [.cacheControl: "max-age=60", .eTag: "\"1\""])
            _ = try await query("a", fixture)
            try await #expect(query("a", fields: [.ifNoneMatch: "\"1\""], fixture).status == 304)
            fixture.clock.advance(by: .seconds(100))
            fixture.transport.handler = { request throws(TransportError) in
                #expect(request.head.headerFields[.ifNoneMatch] == "\"1\"" && request.body != nil)
                return .answer(304, [.eTag: "\"1\"", .cacheControl: "max-age=60"])
            }
            let validated = try await query("a", fixture)
            #expect(validated.source == .revalidated && validated.text == "QUERY a")
        }
    }

    @Test func aRefreshInTheBackgroundSendsTheContent() async throws {
        try await Fixture.run { fixture in
            echo(fixture, [.cacheControl: "max-age=1, stale-while-revalidate=60"])
            _ = try await query("a", fixture)
            fixture.clock.advance(by: .seconds(2))
            try await #expect(query("a", fixture).source == .stale)
            await fixture.cache.drain()
            let fresh = try await query("a", fixture)
            #expect(fresh.source == .hit && fresh.text == "QUERY a")
        }
    }

    /// It is safe: nothing is invalidated by it, and what unsafe methods and purging invalidate is gone.
    @Test func whatInvalidates() async throws {
        try await Fixture.run { fixture in
            fixture.answer("page")
            _ = try await fixture.get()
            echo(fixture)
            _ = try await query("a", fixture)
            try await #expect(fixture.get().response.source == .hit)
            let post = try HTTPCache.request(for: Fixture.url, method: .post)
            _ = try await fixture.cache.fetch(post, body: RequestBody([1])).body.bytes()
            try await #expect(query("a", fixture).source == .network)
            try await #expect(fixture.cache.purge(Fixture.url) == 1)
            try await #expect(query("a", fixture).source == .network)
        }
    }

    @Test func purgingByPrefixTakesQueries() async throws {
        try await Fixture.run { fixture in
            echo(fixture)
            _ = try await query("a", fixture)
            try await #expect(fixture.cache.purge(prefix: "http://example.org/") == 1)
            try await #expect(query("a", fixture).source == .network)
        }
    }

    /// Section 2: `Content-Location` and `Location` name resources of their own, which GET asks the origin for.
    @Test func locationsAreNotAnsweredFromTheQuery() async throws {
        try await Fixture.run { fixture in
            echo(fixture, [.cacheControl: "max-age=60", .contentLocation: "/result", .location: "/equivalent"])
            _ = try await query("a", fixture)
            for path in ["result", "equivalent"] {
                try await #expect(fixture.get("http://example.org/\(path)").response.source == .network)
            }
        }
    }

    @Test func notStoredWhereThatIsTurnedOff() async throws {
        try await Fixture.run({ $0.cachesQueries = false }) { fixture in
            echo(fixture)
            for _ in 0..<2 { try await #expect(query("a", fixture).source == .network) }
        }
    }
}
