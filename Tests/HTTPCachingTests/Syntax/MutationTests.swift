import HTTPScenarios
import HTTPTypes
import TestSupport
import Testing

@testable import HTTPCaching

/// Bytes from outside never trap: every parser and every decision, fed with mutations of real values. Deterministic;
/// a failure prints its seed.
struct MutationTests {
    static let seeds: [String] = [
        "max-age=3600, s-maxage=\"60\", no-cache=\"a, b\", private, stale-while-revalidate=5", "no-store",
        "public, max-age=31536000, immutable",
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "\"abc\", W/\"def\", *", "W/\"x\"",
        "bytes=0-499, 500-, -5", "bytes 0-499/1234", "bytes */1234", "Accept-Encoding, Accept-Language, *",
        "en;q=0.8, de, *;q=0.1",
        "text/html;level=1;q=0.4, */*", "\"group one\", \"two\";a=1",
        "max-age=10, no-cache=(\"a\" \"b\"), foo;bar=?0, baz=1.5", "12345",
        "../a/./b//c?d=e#f", "https://example.org:443/x%20y", "99999999999999999999999999", "",
        "@1659578233, %\"caf%c3%a9\"", ":cHJldGVuZA==:",
    ]

    static func mutate(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            let index = bytes.isEmpty ? 0 : Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: index)
            case 1: if !bytes.isEmpty { bytes.remove(at: index) }
            case 2: if !bytes.isEmpty { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
            case 3: bytes.insert(contentsOf: ",;=\"\\ -/0*(".utf8.shuffled(using: &generator).prefix(2), at: index)
            case 4: bytes.insert(contentsOf: Array(repeating: UInt8(ascii: "9"), count: 25), at: index)
            case 5: bytes.removeLast(bytes.count - index)
            case 6: bytes.append(contentsOf: bytes.prefix(200))
            default:
                let other = Array(seeds.randomElement(using: &generator)!.utf8)
                bytes.insert(contentsOf: other.prefix(Int.random(in: 0...other.count, using: &generator)), at: index)
            }
        }
        return bytes
    }

    /// Runs every parser on some bytes and checks what must hold of the results.
    static func parseAll(_ bytes: [UInt8], seed: UInt64) {
        let now = start
        if let date = HTTPDate.parse(bytes, now: now) {
            #expect(HTTPDate.parse(Array(HTTPDate.format(date).utf8), now: now) == date, "seed \(seed)")
        }
        if let seconds = DeltaSeconds.parse(bytes) {
            #expect(seconds >= 0 && seconds <= DeltaSeconds.maximum, "seed \(seed)")
        }
        _ = ResponseDirectives(bytes)
        _ = RequestDirectives(bytes)
        _ = TargetedField.parse(bytes)
        _ = StringList.parse(bytes)
        for tag in EntityTag.list(bytes) { #expect(EntityTag(tag.bytes) == tag, "seed \(seed)") }
        if case .bytes(let field) = RangeField.parse(bytes) {
            for length in [0, 1, 1_000, Int64.max] {
                for range in field.resolved(length: length) {
                    #expect(range.lowerBound >= 0 && range.upperBound <= length && !range.isEmpty, "seed \(seed)")
                }
            }
            if let merged = CacheRules.merged(field.resolved(length: 1_000), of: ByteRanges([0..<1_000])) {
                #expect(merged.count <= field.specifications.count, "seed \(seed)")
            }
        }
        if let content = ContentRange(bytes) {
            #expect(ContentRange(Array(content.fieldValue.utf8)) == content, "seed \(seed)")
        }
        if let reference = URIReference(bytes) { _ = reference.resolved(against: reference) }
        _ = SelectingFields(encoded: bytes)
        _ = FieldBytes.members(bytes)
        _ = FieldBytes.unquoted(bytes[...])
    }

    @Test func parsersAreTotal() {
        let first: UInt64 = 20_260_101
        for seed in first..<(first + 8_000) {
            var generator = SeededGenerator(seed: seed)
            let base = Array(Self.seeds[Int(seed % UInt64(Self.seeds.count))].utf8)
            Self.parseAll(Self.mutate(base, &generator), seed: seed)
        }
        print("parsersAreTotal: seeds \(first)..<\(first + 8_000)")
    }

    @Test func longAndStrangeValuesAreHarmless() {
        let pieces: [[UInt8]] = [
            [0], [0x2C], [0x22], [0x5C], [0x3D], [0x39], [0xFF], [0x28], [0x20], [0x61], [0x2D], Array("a=\"".utf8),
            Array("0-,".utf8),
        ]
        for piece in pieces {
            let value = Array([[UInt8]](repeating: piece, count: 65_536 / piece.count).joined())
            Self.parseAll(value, seed: 0)
            Self.parseAll(Array("bytes=".utf8) + value, seed: 0)
            Self.parseAll(Array("\"".utf8) + value, seed: 0)
        }
    }

    static let requestNames = [
        "Cache-Control", "If-None-Match", "If-Modified-Since", "Range", "If-Range", "Accept-Language", "Pragma",
        "Authorization", "Accept",
    ]
    static let responseNames = [
        "Cache-Control", "CDN-Cache-Control", "Expires", "Date", "Age", "Last-Modified", "ETag", "Vary",
        "Content-Range", "Content-Length", "Location",
        "Content-Location", "Cache-Groups", "Cache-Group-Invalidation", "Connection", "Content-Language", "Set-Cookie",
    ]

    /// Values that make sense in a field, so that the decisions behind the parsers are reached as well.
    static func usual(_ name: String, _ generator: inout SeededGenerator) -> [UInt8] {
        let values: [String]
        switch name {
        case "Cache-Control":
            values = [
                "max-age=3600", "max-age=1, stale-if-error=9999", "no-cache", "private, max-age=9", "no-store",
                "s-maxage=99, public",
            ]
        case "CDN-Cache-Control": values = ["max-age=3600", "no-store", "private"]
        case "ETag", "If-None-Match", "If-Range": values = ["\"a\"", "\"b\"", "W/\"a\""]
        case "Range": values = ["bytes=0-4", "bytes=-3", "bytes=2-", "bytes=0-1,8-9"]
        case "Content-Range": values = ["bytes 0-4/10", "bytes 5-9/10", "bytes 2-9/*"]
        case "Vary": values = ["Accept-Language", "Accept", "*"]
        case "Accept-Language", "Content-Language": values = ["en", "de", "en, de;q=0.5"]
        case "Age", "Content-Length": values = ["0", "5", "5000"]
        case "Location", "Content-Location": values = ["/resource", "other"]
        default:
            values = [
                "Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 10:00:00 GMT", "Fri, 17 Nov 2023 10:00:00 GMT",
            ]
        }
        return Array(values.randomElement(using: &generator)!.utf8)
    }

    @Test func decisionsAreTotalAndNeverLeak() {
        let first: UInt64 = 7_000_000
        var stored = 0
        var hits = 0
        for seed in first..<(first + 4_000) {
            var generator = SeededGenerator(seed: seed)
            var options: CachingOptions = Bool.random(using: &generator) ? .gateway : .privateCache
            options.honorsPragma = Bool.random(using: &generator)
            var cache = ModelCache(options)
            for _ in 0..<5 {
                func random(_ names: [String]) -> HTTPFields {
                    var fields = HTTPFields()
                    for _ in 0..<Int.random(in: 0...6, using: &generator) {
                        let name = names.randomElement(using: &generator)!
                        var value = Self.usual(name, &generator)
                        if Int.random(in: 0..<6, using: &generator) == 0 { value = Self.mutate(value, &generator) }
                        fields.append(HTTPField(name: HTTPField.Name(name)!, value: value))
                    }
                    return fields
                }
                var sent = request(
                    ["GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "FOO"].randomElement(using: &generator)!)
                sent.headerFields = random(Self.requestNames)
                let status = [200, 200, 200, 200, 206, 206, 304, 304, 404, 416, 503, 103, 599].randomElement(
                    using: &generator)!
                let answer = HTTPResponse(status: .init(code: status), headerFields: random(Self.responseNames))
                let body = [UInt8](repeating: 1, count: Int.random(in: 0...20, using: &generator))
                let isComplete = Int.random(in: 0..<5, using: &generator) > 0
                let isGone = Int.random(in: 0..<8, using: &generator) == 0
                var seen = 0
                let outcome = cache.handle(sent) { _ in
                    seen += 1
                    return isGone ? nil : .init(head: answer, body: body, isComplete: isComplete)
                }
                #expect(seen <= 3, "seed \(seed)")
                hits += outcome.isCached ? 1 : 0
                cache.advance(Double(Int.random(in: -3...400, using: &generator)))
                for entry in cache.entries.values.joined() {
                    stored += 1
                    let directives = cache.rules.directives(of: entry.response.head)
                    if options.mode == .shared { #expect(directives.isPrivate != .unqualified, "seed \(seed)") }
                    #expect(!directives.noStore || directives.mustUnderstand, "seed \(seed)")
                    #expect(entry.response.body.available.count == Int64(entry.body.count), "seed \(seed)")
                }
            }
        }
        print("decisionsAreTotalAndNeverLeak: seeds \(first)..<\(first + 4_000), \(hits) hits, \(stored) entries seen")
        #expect(hits > 100 && stored > 1_000)
    }

    @Test func extremeTimesAndLengthsDoNotTrap() {
        let rules = CacheRules(.gateway)
        let times = [Int64.min, -1, 0, 1_700_000_000_000, Int64.max].map { Instant(milliseconds: $0) }
        let heads = [
            response(
                200,
                [
                    "Cache-Control: max-age=99999999999999, stale-while-revalidate=99999999999999",
                    "Age: 99999999999999", "ETag: \"a\"",
                ]),
            response(200, ["@Expires: 9", "Cache-Control: stale-if-error=99999999999999"]),
            response(206, ["Cache-Control: max-age=9", "Content-Range: bytes 72057594037927935-72057594037927935/*"]),
        ]
        let ranges = [
            "", "Range: bytes=0-,-1,5-9", "Range: bytes=-99999999999999999999, 0-0", "Range: bytes=0-1,-2",
            "Cache-Control: max-stale, min-fresh=99999999999999999",
        ]
        var served = 0
        for requested in times {
            for received in times {
                for head in heads {
                    let policy = rules.policy(for: head, requestTime: requested, responseTime: received)
                    for length in [0, 1, Int64.max] {
                        let stored = StoredResponse(
                            head: HTTPResponse(status: .ok, headerFields: head.headerFields), requestTime: requested,
                            responseTime: received,
                            body: .complete(length: length), policy: policy)
                        for now in times {
                            for line in ranges {
                                let decision = rules.reuse(
                                    request("GET", "/resource", line.isEmpty ? [] : [line]), stored: [stored], now: now)
                                if case .serve(let response) = decision {
                                    served += response.ttlSeconds <= .max ? 1 : 0
                                }
                                if case .forward(let exchange) = decision {
                                    _ = rules.received(
                                        head, for: exchange, stored: [stored], requestTime: requested, responseTime: now
                                    )
                                    _ = rules.failed(exchange, stored: [stored], now: now)
                                }
                            }
                        }
                    }
                }
            }
        }
        #expect(served > 100)
    }

    @Test func floodsOfFieldsAreNeitherStoredNorTrap() {
        let flood = (0..<65_533).map { "X-\($0 % 97): \($0)" }
        var cache = ModelCache()
        let big = ScriptedAnswer(head: response(200, ["Cache-Control: max-age=9"] + flood), body: [1])
        #expect(cache.handle(request()) { _ in big }.obstacle == .tooManyFields)
        let small = ScriptedAnswer(
            head: response(200, ["Cache-Control: max-age=1", "ETag: \"a\""]), body: [1])
        _ = cache.handle(request()) { _ in small }
        cache.advance(3)
        // A request as large as it can be is passed on as it is.
        let outcome = cache.handle(request("GET", "/resource", flood)) { _ in small }
        #expect(outcome.sent.first?.headerFields.count == 65_533)
        cache.advance(3)
        let update = cache.handle(request()) { _ in .init(head: response(304, ["ETag: \"a\""] + flood), body: []) }
        #expect(update.status == 200 && update.fields.count < 10)
    }
}
