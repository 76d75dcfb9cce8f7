import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 9111 sections 3.3 and 3.4 and RFC 9110 section 14 seen from outside.
struct PartialScenarioTests {
    /// An origin with a representation of ten bytes that understands single ranges and `If-Range`.
    static func rangeOrigin(_ request: HTTPRequest, tag: String = "\"v1\"", data: String = "0123456789")
        -> ScriptedAnswer
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

    @Test(arguments: PartialScenarios.fromComplete) func rangesOfCompleteResponses(_ scenario: Scenario) {
        scenario.run()
    }
    @Test(arguments: PartialScenarios.fromPart) func rangesOfParts(_ scenario: Scenario) { scenario.run() }

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

    @Test func severalGapsAreFilled() {
        var cache = ModelCache()
        for range in ["bytes=2-3", "bytes=6-7"] {
            _ = cache.handle(request("GET", "/r", ["Range: \(range)"])) { Self.rangeOrigin($0) }
        }
        let whole = cache.handle(request("GET", "/r")) { Self.rangeOrigin($0) }
        #expect(whole.status == 200 && whole.text == "0123456789" && whole.fields[.contentLength] == "10")
        #expect(whole.sent[0].headerFields[.range] == "bytes=0-1" && whole.sent[0].headerFields[.ifRange] == "\"v1\"")
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
        let answer = ScriptedAnswer(
            head: response(200, [PartialScenarios.hour, "Content-Type: text/plain"]), body: Array(body.utf8))
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

    @Test func whatIsMissingBetweenTwoRangesIsNotSent() {
        var cache = ModelCache()
        for range in ["bytes=0-4", "bytes=7-9"] {
            _ = cache.handle(request("GET", "/r", ["Range: \(range)"])) { Self.rangeOrigin($0) }
        }
        let parts = cache.handle(request("GET", "/r", ["Range: bytes=2-4,-1,3-4,8-8"])) { _ in nil }
        #expect(parts.isCached && parts.status == 206)
        let contents = parts.text.split(separator: "\r\n").filter { $0.first?.isNumber == true }
        #expect(contents == ["234", "89"])
    }

    @Test func greedyRangesAreAnsweredWithTheWhole() {
        var cache = ModelCache()
        let answer = ScriptedAnswer(
            head: response(200, [PartialScenarios.hour]), body: Array(repeating: 7, count: 9_999))
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
