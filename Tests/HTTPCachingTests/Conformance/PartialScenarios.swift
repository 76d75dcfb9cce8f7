import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 3.3 and 3.4 and RFC 9110 section 14 seen from outside.
struct PartialScenarios {
    static let hour = "Cache-Control: max-age=3600"

    static func complete(
        _ name: String, _ range: String, _ status: Int, _ body: String?, _ lines: [String] = [], also: [String] = []
    ) -> Scenario {
        Scenario(
            name, .optimal, .shared,
            .init(responseLines: [hour, "ETag: \"s\"", "Content-Type: text/plain"], body: "0123456789A"),
            .init(
                requestLines: ["Range: \(range)"] + also, expect: .cached, expectStatus: status, expectLines: lines,
                expectBody: body))
    }

    static let fromComplete: [Scenario] = [
        complete(
            "first and last", "bytes=0-1", 206, "01",
            ["Content-Range: bytes 0-1/11", "Content-Length: 2", "Content-Type: text/plain"]),
        complete("no last", "bytes=1-", 206, "123456789A", ["Content-Range: bytes 1-10/11"]),
        complete("suffix", "bytes=-1", 206, "A", ["Content-Range: bytes 10-10/11"]),
        complete("suffix longer than all", "bytes=-99", 206, "0123456789A", ["Content-Range: bytes 0-10/11"]),
        complete("last beyond the end", "bytes=9-99", 206, "9A", ["Content-Range: bytes 9-10/11"]),
        complete("last beyond all numbers", "bytes=9-99999999999999999999999999", 206, "9A"),
        complete("upper case unit", "BYTES=0-1", 206, "01"),
        complete("not satisfiable", "bytes=11-", 416, "", ["Content-Range: bytes */11"]),
        complete("empty suffix", "bytes=-0", 416, ""),
        complete("last before first", "bytes=2-1", 200, "0123456789A"),
        complete("broken", "bytes=a-b", 200, "0123456789A"),
        complete("broken list", "bytes=0-1,x", 200, "0123456789A"),
        complete("nothing", "bytes=", 200, "0123456789A"),
        complete("overlapping become one", "bytes=0-3,2-5", 206, "012345", ["Content-Range: bytes 0-5/11"]),
        complete("one of two is satisfiable", "bytes=0-1,50-", 206, "01", ["Content-Range: bytes 0-1/11"]),
        complete("If-Range, same", "bytes=0-1", 206, "01", [], also: ["If-Range: \"s\""]),
        complete("If-Range, other", "bytes=0-1", 200, "0123456789A", [], also: ["If-Range: \"t\""]),
        complete("If-Range, weak", "bytes=0-1", 200, "0123456789A", [], also: ["If-Range: W/\"s\""]),
        complete("If-None-Match goes first", "bytes=0-1", 304, "", [], also: ["If-None-Match: \"s\""]),
        complete("two lines are ignored", "bytes=0-1", 200, "0123456789A", [], also: ["Range: bytes=3-4"]),
        Scenario(
            "not for other statuses", .required, .shared, .init(status: 404, responseLines: [hour], body: "0123"),
            .init(requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 404, expectBody: "0123")),
        Scenario(
            "not for HEAD", .required, .shared, .init(responseLines: [hour], body: "0123"),
            .init(method: "HEAD", requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 200)),
        Scenario(
            "another unit goes to the origin", .required, .shared, .init(responseLines: [hour], body: "0123"),
            .init(requestLines: ["Range: lines=0-1"], expect: .notCached)),
        Scenario(
            "If-Range with a strong date", .optimal, .shared,
            .init(responseLines: [hour, "@Date: 0", "Last-Modified: Tue, 14 Nov 2023 10:00:00 GMT"], body: "0123"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 10:00:00 GMT"], expect: .cached,
                expectStatus: 206,
                expectBody: "01"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 10:00:01 GMT"], expect: .cached,
                expectStatus: 200)),
        Scenario(
            "If-Range with a weak date", .required, .shared,
            .init(
                responseLines: [
                    hour, "Date: Tue, 14 Nov 2023 22:13:20 GMT", "Last-Modified: Tue, 14 Nov 2023 22:13:19 GMT",
                ], body: "0123"),
            .init(
                requestLines: ["Range: bytes=0-1", "If-Range: Tue, 14 Nov 2023 22:13:19 GMT"], expect: .cached,
                expectStatus: 200)),
        Scenario(
            "the stored fields are used", .required, .shared,
            .init(responseLines: [hour, "A: 1"], body: "01234567890"),
            .init(
                requestLines: ["Range: bytes=0-1"], expect: .cached, expectStatus: 206, expectLines: ["A: 1"],
                expectBody: "01")),
        Scenario(
            "stale: validated, then a range", .optimal, .shared,
            .init(responseLines: ["Cache-Control: max-age=1", "ETag: \"a\""], body: "0123"),
            .init(
                requestLines: ["Range: bytes=1-2"], responseLines: ["ETag: \"a\"", "A: 2"], after: 3,
                expect: .validatedByTag, expectStatus: 206,
                expectLines: ["A: 2"], expectBody: "12")),
    ]

    /// A stored part, then a request.
    static func part(
        _ name: String, _ kind: Scenario.Kind, _ contentRange: String, _ body: String, _ lines: [String],
        _ expect: Scenario.Expectation,
        status: Int? = nil, gives: String? = nil, sent: [String] = []
    ) -> Scenario {
        Scenario(
            name, kind, .shared,
            .init(
                requestLines: ["Range: bytes=-5"], status: 206,
                responseLines: [hour, "Content-Range: \(contentRange)"], body: body,
                expectSent: ["Range: bytes=-5"]),
            .init(requestLines: lines, expect: expect, expectStatus: status, expectBody: gives, expectSent: sent))
    }

    static let fromPart: [Scenario] = [
        part("the same", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=-5"], .cached, status: 206, gives: "56789"),
        part("smaller", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=6-8"], .cached, status: 206, gives: "678"),
        part("no last", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=6-"], .cached, status: 206, gives: "6789"),
        part("suffix", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=-1"], .cached, status: 206, gives: "9"),
        part("outside", .required, "bytes 5-9/10", "56789", ["Range: bytes=4-6"], .notCached),
        part("whole", .required, "bytes 3-6/10", "3456", [], .notCached),
        part("not satisfiable", .optimal, "bytes 5-9/10", "56789", ["Range: bytes=10-"], .cached, status: 416),
        part(
            "unknown length, inside", .optimal, "bytes 5-9/*", "56789", ["Range: bytes=6-7"], .cached, status: 206,
            gives: "67"),
        part("unknown length, suffix", .required, "bytes 5-9/*", "56789", ["Range: bytes=-1"], .notCached),
        part("other unit is not kept", .required, "lines 5-9/10", "56789", ["Range: bytes=5-9"], .notCached),
        part("invalid range is not kept", .required, "bytes 5-9/9", "56789", ["Range: bytes=5-9"], .notCached),
        part("more bytes than said are not kept", .required, "bytes 5-8/10", "56789", ["Range: bytes=5-8"], .notCached),
        // The content is one byte shorter than Content-Range says: the framing decides.
        part(
            "short, the same", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=-5"], .cached, status: 206,
            gives: "01234"),
        part(
            "short, inside", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=6-8"], .cached, status: 206, gives: "234"
        ),
        part(
            "short, no last", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=6-"], .cached, status: 206, gives: "234"
        ),
        part("short, suffix", .optimal, "bytes 4-9/10", "01234", ["Range: bytes=-1"], .cached, status: 206, gives: "4"),
        part("the rest is asked for", .optimal, "bytes 0-4/10", "01234", [], .notCached, sent: ["Range: bytes=5-"]),
        part(
            "the beginning is asked for", .optimal, "bytes 5-9/10", "56789", [], .notCached, sent: ["Range: bytes=0-4"]),
    ]

    @Test(arguments: fromComplete) func rangesOfCompleteResponses(_ scenario: Scenario) { scenario.run() }
    @Test(arguments: fromPart) func rangesOfParts(_ scenario: Scenario) { scenario.run() }

    /// An origin with a representation of ten bytes that understands single ranges and `If-Range`.
    static func rangeOrigin(_ request: HTTPRequest, tag: String = "\"v1\"", data: String = "0123456789")
        -> ModelCache.OriginAnswer
    {
        let bytes = Array(data.utf8)
        let common = ["Cache-Control: max-age=60", "ETag: \(tag)", "Accept-Ranges: bytes"]
        let condition = request.headerFields[.ifRange]
        if let value = request.headerFields.single(.range), case .bytes(let field) = RangeField.parse(value),
            condition == nil || condition == tag,
            let range = field.resolved(length: Int64(bytes.count)).first
        {
            let content = ContentRange(range: range, completeLength: Int64(bytes.count)).fieldValue
            return .init(
                head: response(206, common + ["Content-Range: \(content)"]),
                body: Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
        return .init(head: response(200, common), body: bytes)
    }

    @Test(arguments: [("bytes=0-3", "bytes=4-"), ("bytes=4-", "bytes=0-3")])
    func aPartIsCompletedWithIfRange(first: String, missing: String) {
        var cache = ModelCache()
        _ = cache.handle(request("GET", "/r", ["Range: \(first)"])) { Self.rangeOrigin($0) }
        let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0) }
        #expect(whole.status == 200 && whole.text == "0123456789" && whole.fields[.contentLength] == "10")
        #expect(whole.sent[0].headerFields[.range] == missing && whole.sent[0].headerFields[.ifRange] == "\"v1\"")
        #expect(!whole.fields.contains(.contentRange) && whole.cacheStatus.contains("fwd=partial; fwd-status=206"))
        let again = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0) }
        #expect(again.isCached && again.text == "0123456789")
    }

    @Test func aPartOfAnOldRepresentationIsReplaced() {
        var cache = ModelCache()
        _ = cache.handle(request("GET", "/r", ["Range: bytes=0-3"])) { Self.rangeOrigin($0) }
        let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0, tag: "\"v2\"", data: "abcdefghij") }
        #expect(whole.text == "abcdefghij" && whole.sent.count == 1)
        #expect(cache.handle(request("GET", "/r")) { Self.rangeOrigin($0) }.text == "abcdefghij")
    }

    @Test func anOriginThatIgnoresIfRangeDoesNotMixRepresentations() {
        var cache = ModelCache()
        _ = cache.handle(request("GET", "/r", ["Range: bytes=0-3"])) { Self.rangeOrigin($0) }
        let whole = cache.handle(request("GET", "/r")) { sent in
            var sent = sent
            sent.headerFields[.ifRange] = nil
            return Self.rangeOrigin(sent, tag: "\"v2\"", data: "abcdefghij")
        }
        #expect(whole.text == "abcdefghij" && whole.sent.count == 2 && whole.status == 200)
    }

    @Test func withoutAStrongValidatorPartsAreNotCombined() {
        var cache = ModelCache()
        _ = cache.handle(request("GET", "/r", ["Range: bytes=0-3"])) { Self.rangeOrigin($0, tag: "W/\"v1\"") }
        let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0, tag: "W/\"v1\"") }
        #expect(whole.text == "0123456789" && whole.sent.count == 2)
    }

    @Test func rangesAreCombinedUntilTheRepresentationIsWhole() {
        var cache = ModelCache()
        for range in ["bytes=2-3", "bytes=6-7", "bytes=0-1", "bytes=8-9", "bytes=4-5"] {
            _ = cache.handle(request("GET", "/r", ["Range: \(range)"])) { Self.rangeOrigin($0) }
        }
        #expect(cache.entries.values.first?.count == 1)
        let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0) }
        #expect(whole.isCached && whole.text == "0123456789")
        let middle = cache.handle(request("GET", "/r", ["Range: bytes=3-6"])) { _ in nil }
        #expect(middle.isCached && middle.text == "3456")
    }

    @Test func aCutOffResponseIsKeptWithAStrongValidatorOnly() {
        for (tag, isKept) in [("\"v1\"", true), ("W/\"v1\"", false)] {
            var cache = ModelCache()
            _ = cache.handle(request("GET", "/r")) { sent in
                var answer = Self.rangeOrigin(sent, tag: tag)
                answer.head.headerFields[.contentLength] = "10"
                answer.body = Array(answer.body.prefix(4))
                answer.isComplete = false
                return answer
            }
            let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0, tag: tag) }
            #expect(whole.text == "0123456789" && !whole.isCached)
            #expect(whole.sent[0].headerFields[.range] == (isKept ? "bytes=4-" : nil))
        }
    }

    @Test func severalRangesAreSentAsMultipart() {
        var cache = ModelCache()
        let body = String(repeating: "0123456789", count: 100)
        let answer = ModelCache.OriginAnswer(
            head: response(200, [Self.hour, "Content-Type: text/plain"]), body: Array(body.utf8))
        _ = cache.handle(request()) { _ in answer }
        let parts = cache.handle(request("GET", "/resource", ["Range: bytes=0-1,500-502,-1"])) { _ in nil }
        let type = parts.fields[.contentType] ?? ""
        #expect(
            parts.status == 206 && type.hasPrefix("multipart/byteranges; boundary=")
                && !parts.fields.contains(.contentRange))
        let boundary = type.split(separator: "=").last.map(String.init) ?? ""
        let expected =
            "--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/1000\r\n\r\n01"
            + "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 500-502/1000\r\n\r\n012"
            + "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 999-999/1000\r\n\r\n9\r\n--\(boundary)--\r\n"
        #expect(parts.text == expected)
        #expect(parts.fields[.contentLength] == String(expected.utf8.count))
    }

    @Test func greedyRangesAreAnsweredWithTheWhole() {
        var cache = ModelCache()
        let answer = ModelCache.OriginAnswer(head: response(200, [Self.hour]), body: Array(repeating: 7, count: 9_999))
        _ = cache.handle(request()) { _ in answer }
        let many = (0..<40).map { "\($0 * 200)-\($0 * 200)" }.joined(separator: ",")
        let overlapping = Array(repeating: "0-", count: 5).joined(separator: ",")
        for value in [many, overlapping] {
            let outcome = cache.handle(request("GET", "/resource", ["Range: bytes=\(value)"])) { _ in nil }
            #expect(outcome.status == 200 && outcome.body.count == 9_999)
        }
    }

    @Test func partsAreNotKeptWhenTheOptionSaysSo() {
        var options = CachingOptions.gateway
        options.storesPartialResponses = false
        var cache = ModelCache(options)
        let first = cache.handle(request("GET", "/r", ["Range: bytes=0-3"])) { Self.rangeOrigin($0) }
        #expect(first.obstacle == .partNotUnderstood && first.status == 206)
    }
}
