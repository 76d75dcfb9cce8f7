import Foundation
import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import SeededData
import TestOrigin
import TestSupport
import Testing

/// Answers on the short way are those on the long way: a `Pragma` that says nothing sends the same request there.
struct PlainHitTests {
    private static let rounds = Int(ProcessInfo.processInfo.environment["LARDER_PLAIN_HITS"] ?? "") ?? 1

    @Test(arguments: [Compression.off, .trial]) func theShortWayAnswersAsTheLongOne(_ compression: Compression)
        async throws
    {
        for round in 0..<Self.rounds {
            let comparison = Comparison(round)
            try await withGateway(
                transport: comparison.transport, compression: compression, caching: { comparison.set(&$0, compression) }
            ) { setting in
                let client = ConnectingClient(setting)
                try await comparison.run(setting, client)
                try await client.close()
            }
        }
    }

    @Test(arguments: [Compression.off, .trial]) func theShortWayAnswersAsTheLongOneOverHTTP2(
        _ compression: Compression
    ) async throws {
        for round in 0..<Self.rounds {
            let comparison = Comparison(round)
            try await withTLS(
                comparison.transport, compression: compression, caching: { comparison.set(&$0, compression) }
            ) { setting, port in
                let client = try await HTTP2Client.connect(to: port)
                try await comparison.run(setting, client)
                await client.close()
            }
        }
    }
}

/// Random resources, and random requests for them on both ways.
private final class Comparison: Sendable {
    private let round: Int
    private let resources: [Resource]
    let transport: ScriptedTransport

    init(_ round: Int) {
        self.round = round
        var random = SeededGenerator(seed: UInt64(round))
        let resources = (0..<24).map { Resource($0, &random) }
        self.resources = resources
        transport = ScriptedTransport { request in
            let path = request.head.path ?? ""
            guard let number = Int(path.dropFirst()), resources.indices.contains(number) else { return .text("none") }
            let resource = resources[number]
            if resource.isInParts, let part = resource.part(request.head.headerFields[.range]) { return part }
            return .bytes(resource.body, resource.fields, declaresLength: resource.declaresLength)
        }
    }

    func set(_ configuration: inout HTTPCacheConfiguration, _ compression: Compression) {
        // Beside that of the store, by which parts expire.
        configuration.clock = TestClock(wall: SystemClock().now())
        configuration.compressesBodies = compression != .off
    }

    func run(_ setting: Setting, _ client: some Asking) async throws {
        var random = SeededGenerator(seed: UInt64(round) &+ 1 << 32)
        for resource in resources {
            for line in resource.firstLines { _ = try await client.answer("GET", resource.path, [line]) }
        }
        try await setting.store.perform { try $0.flush() }
        var hits = 0
        for _ in 0..<400 {
            let resource = resources.randomElement(using: &random) ?? resources[0]
            let (method, lines) = resource.request(&random)
            let long = lines + ["Pragma: nothing"]
            // What is not stored yet is stored by the first.
            if try await !client.answer(method, resource.path, long).isHit { try await setting.settleStore() }
            let short = try await client.answer(method, resource.path, lines)
            let expected = try await client.answer(method, resource.path, long)
            hits += short.isHit ? 1 : 0
            let about = Comment(rawValue: "round \(round), \(method) \(resource.path)\n\(lines)\n\(resource.fields)")
            #expect(short.isHit == expected.isHit, about)
            guard short.isHit else {
                try await setting.settleStore()
                continue
            }
            #expect(short == expected, about)
        }
        #expect(hits > 200)
    }
}

extension Setting {
    /// All that was loaded is in the index.
    fileprivate func settleStore() async throws {
        await cache.drain()
        try await store.perform { try $0.flush() }
    }
}

/// What is compared of an answer.
private struct Answer: Equatable {
    var lines: [String]
    var body: [UInt8]
    var isHit: Bool { lines.contains { $0.lowercased().hasPrefix("cache-status") && $0.contains("hit") } }
}

/// A client over one version of HTTP.
private protocol Asking {
    func answer(_ method: String, _ path: String, _ lines: [String]) async throws -> Answer
}

/// Connects again when the gateway has closed a connection as it was asked to.
private final class ConnectingClient: Asking {
    private let setting: Setting
    private var client: RawClient?

    init(_ setting: Setting) { self.setting = setting }

    func close() async throws { try await client?.close() }

    func answer(_ method: String, _ path: String, _ lines: [String]) async throws -> Answer {
        let client = if let client { client } else { try await setting.connect() }
        self.client = client
        try await client.send(get(path, lines.joined(separator: "\r\n"), method: method))
        let response = try await client.response(to: method)
        let closes = lines.contains { $0.lowercased() == "connection: close" }
        #expect(response["Connection"] == (closes ? "close" : nil))
        if closes {
            try await #expect(client.rest().isEmpty)
            try await client.close()
            self.client = nil
        }
        let fields = response.fields.map { "\($0.name): \($0.value)" }.sorted()
        return Answer(lines: [response.statusLine] + fields, body: response.body)
    }
}

extension HTTP2Client: Asking {
    fileprivate func answer(_ method: String, _ path: String, _ lines: [String]) async throws -> Answer {
        var fields = HTTPFields()
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard let name = HTTPField.Name(String(parts[0])), name != .connection else { continue }
            fields.append(HTTPField(name: name, value: String(parts.last?.dropFirst() ?? "")))
        }
        let request = HTTPRequest(
            method: .init(method) ?? .get, scheme: "https", authority: "example.org", path: path, headerFields: fields)
        let response = try await send(request)
        let received = response.head.headerFields.map { "\($0.name): \($0.value)" }.sorted()
        return Answer(lines: ["\(response.head.status.code)"] + received, body: response.body)
    }
}

/// A response that the origin gives, and requests for it.
private struct Resource: Sendable {
    static let codings = ["gzip", "gzip, br", "identity", "br;q=0.5"]
    let path: String
    let body: [UInt8]
    let fields: HTTPFields
    let declaresLength: Bool
    /// Whether the origin sends ranges, and nothing else is asked for.
    let isInParts: Bool

    init(_ number: Int, _ random: inout SeededGenerator) {
        path = "/\(number)"
        let length = [0, 1, 200, 3_000, 20_000, 100_000].randomElement(using: &random) ?? 0
        body = Array(String(repeating: "line \(number)\n", count: length / 6 + 1).utf8.prefix(length))
        var fields: HTTPFields = [:]
        fields[.cacheControl] =
            ["max-age=600", "max-age=600, no-transform", "public, max-age=600, immutable"].randomElement(using: &random)
        fields[.contentType] = ["text/html", "image/png", "text/plain; charset=utf-8"].randomElement(using: &random)
        if Bool.random(using: &random) {
            fields[.eTag] = ["\"a\"", "W/\"a\"", "\"b,c\"", "broken"].randomElement(using: &random)
        }
        if Bool.random(using: &random) { fields[.lastModified] = "Wed, 18 Nov 2026 10:00:00 GMT" }
        if Bool.random(using: &random) {
            fields[.vary] = ["Accept-Encoding", "accept-language, Accept-Encoding", "X-None"].randomElement(
                using: &random)
        }
        if Int.random(in: 0..<4, using: &random) == 0 { fields[.contentEncoding] = "br" }
        if Int.random(in: 0..<3, using: &random) == 0 { fields[.acceptRanges] = "bytes" }
        if Int.random(in: 0..<4, using: &random) == 0 { fields[.contentLanguage] = "en" }
        if Int.random(in: 0..<6, using: &random) == 0 { fields[.setCookie] = "a=b" }
        declaresLength = Int.random(in: 0..<4, using: &random) > 0
        isInParts = number % 4 == 3 && length > 200
        if isInParts { fields[.eTag] = "\"a\"" }
        self.fields = fields
    }

    /// What the requests have that are sent first.
    var firstLines: [String] {
        isInParts
            ? ["Range: bytes=0-99", "Range: bytes=150-1999"] : Self.codings.map { "Accept-Encoding: \($0)" }
    }

    /// The answer to a request for one range.
    func part(_ range: String?) -> TransportResponse? {
        guard let range, range.hasPrefix("bytes="), !range.contains(",") else { return nil }
        let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard ends.count == 2, let first = ends[0], first < body.count else { return nil }
        let last = min(ends[1] ?? body.count - 1, body.count - 1)
        var fields = fields
        fields[.contentRange] = "bytes \(first)-\(last)/\(body.count)"
        return .bytes(Array(body[first...last]), status: 206, fields, declaresLength: declaresLength)
    }

    func request(_ random: inout SeededGenerator) -> (method: String, lines: [String]) {
        var lines = ["User-Agent: test"]
        func add(_ chance: Int, _ name: String, _ values: [String]) {
            guard Int.random(in: 0..<chance, using: &random) == 0, let value = values.randomElement(using: &random)
            else {
                return
            }
            lines.append("\(name): \(value)")
        }
        add(2, "Accept-Encoding", Self.codings + ["*", "GZIP", "identity;q=0, gzip", "gzip;q=0"])
        add(6, "Accept-Language", ["en", "de, en;q=0.5"])
        add(3, "If-None-Match", ["\"a\"", "W/\"a\"", "\"x\", \"a\"", "*", "\"b,c\"", "broken", "\"zzz\"", ""])
        add(6, "If-None-Match", ["\"q\""])
        add(5, "If-Modified-Since", ["Wed, 18 Nov 2026 10:00:00 GMT", "Tue, 17 Nov 2026 10:00:00 GMT", "now"])
        if isInParts {
            add(
                1, "Range",
                ["bytes=0-0", "bytes=5-20", "bytes=90-160", "bytes=200-1999", "bytes=0-1,5-6", "bytes=2000-2900"]
            )
        } else {
            add(
                3, "Range",
                [
                    "bytes=0-0", "bytes=5-100", "bytes=-7", "bytes=100-", "bytes=0-1,5-6", "lines=1-2", "bytes=",
                    "bytes=999999-",
                ])
        }
        add(8, "If-Range", ["\"a\"", "\"z\"", "Wed, 18 Nov 2026 10:00:00 GMT"])
        add(
            4, "Cache-Control",
            [
                "max-age=0", "max-age=100", "no-transform", "min-fresh=10", "max-stale", "only-if-cached", "no-store",
                "x=y",
            ])
        add(12, "Via", ["1.1 other", "1.0 a, 1.1 b"])
        add(
            8, "Connection",
            ["keep-alive", "close", "Close", "range", "Keep-Alive, if-none-match", "accept-encoding, x-other"])
        add(12, "Authorization", ["Basic YTpi"])
        let method = !isInParts && Int.random(in: 0..<4, using: &random) == 0 ? "HEAD" : "GET"
        return (method, lines.shuffled(using: &random))
    }
}
