import HTTPTypes
import Larder

@testable import HTTPCaching
@testable import LarderHTTP

/// What decodes bytes of origins, clients and the store in the layers of HTTP, and what has to hold of the results.
/// `tools/fuzz` and `FuzzTests` feed it.
enum HTTPDecoders {
    /// Something that does not hold.
    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    private static let now = Instant(milliseconds: 1_700_000_000_000)

    private static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw Finding(description: what()) }
    }

    // MARK: Values of fields

    /// The value of a field, read as each of those that a cache understands.
    static func field(_ bytes: [UInt8]) throws {
        if let date = HTTPDate.parse(bytes, now: now) {
            try require(HTTPDate.parse(Array(HTTPDate.format(date).utf8), now: now) == date, "a date changes")
        }
        if let seconds = DeltaSeconds.parse(bytes) {
            try require((0...DeltaSeconds.maximum).contains(seconds), "\(seconds) seconds")
        }
        _ = (ResponseDirectives(bytes), RequestDirectives(bytes), TargetedField.parse(bytes), StringList.parse(bytes))
        for tag in EntityTag.list(bytes) { try require(EntityTag(tag.bytes) == tag, "an entity tag changes") }
        if case .bytes(let field) = RangeField.parse(bytes) {
            for length in [0, 1, 1_000, Int64.max] {
                for range in field.resolved(length: length) {
                    try require(range.lowerBound >= 0 && range.upperBound <= length && !range.isEmpty, "range \(range)")
                }
            }
        }
        if let content = ContentRange(bytes) {
            try require(ContentRange(Array(content.fieldValue.utf8)) == content, "a Content-Range changes")
        }
        if let reference = URIReference(bytes) { _ = reference.resolved(against: reference) }
    }

    // MARK: Exchanges

    /// A request and its answer, stored and asked for again. The first byte says under which options and with which
    /// status, the second how long the body is and when the second request comes; then the fields of the first request,
    /// of the response and of the second request, one to a line, each block behind an empty line.
    static func exchange(_ input: [UInt8]) throws {
        guard input.count > 2 else { return }
        var blocks: [HTTPFields] = [[:]]
        for line in input[2...].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            guard !line.isEmpty else {
                blocks.append([:])
                continue
            }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
            else { continue }
            blocks[blocks.count - 1].append(HTTPField(name: name, lenientValue: line[(colon + 1)...]))
        }
        let rules = CacheRules(input[0] & 1 == 0 ? .gateway : .privateCache)
        let statuses = [200, 206, 304, 404, 200, 503, 301, 416]
        let status = statuses[Int(input[0] >> 1) % statuses.count]
        let received = now.advanced(byMilliseconds: 300)
        let later = received.advanced(byMilliseconds: [0, 5_000, 500_000, -100_000][Int(input[1] >> 6)])
        let sent = request(blocks[0])
        let answer = HTTPResponse(
            status: .init(code: status), headerFields: blocks.count > 1 ? blocks[1] : [:])
        let again = request(blocks.count > 2 ? blocks[2] : [:])

        guard rules.cacheKey(for: sent) != nil, case .forward(let exchange) = rules.reuse(sent, stored: [], now: now)
        else { return }
        let decision = rules.received(answer, for: exchange, stored: [], requestTime: now, responseTime: received)
        let directives = rules.directives(of: answer)
        guard let new = decision.store else { return }
        let isKeptFromShared = rules.options.mode == .shared && directives.isPrivate == .unqualified
        try require(!isKeptFromShared, "a shared cache stores what is private")
        try require(!directives.noStore || directives.mustUnderstand, "what says no-store is stored")
        let length = Int64(input[1] & 63)
        guard let stored = new.finished(receivedBytes: length, isComplete: true) else { return }
        try require(stored.body.available.count == length, "a body of \(length) bytes has another length when stored")
        try reuse(stored, by: again, answer, rules, now: later)
        let record = StoredRecord(stored)
        try require(
            StoredRecord(record.encoded)?.encoded == record.encoded, "a response cannot be read when it was written")
    }

    private static func request(_ fields: HTTPFields) -> HTTPRequest {
        HTTPRequest(method: .get, scheme: "http", authority: "example.org", path: "/a", headerFields: fields)
    }

    /// Asks for what is stored, and has it answered.
    private static func reuse(
        _ stored: StoredResponse, by request: HTTPRequest, _ answer: HTTPResponse, _ rules: CacheRules, now: Instant
    ) throws {
        func check(_ served: ServedResponse) throws {
            try require(stored.selecting.matches(request.headerFields), "a response that another request selected")
            try require(served.ageMilliseconds >= 0, "an age of \(served.ageMilliseconds) ms")
            _ = (served.ttlSeconds, served.cacheStatus(name: "larder").fieldValue)
            switch served.content {
            case .none, .whole: break
            case .range(let range): try require(stored.body.available.contains(range), "\(range) is not stored")
            case .multipart(let parts):
                _ = (parts.contentLength, parts.header(of: 0), parts.trailer)
                for range in parts.ranges {
                    try require(stored.body.available.contains(range), "\(range) is not stored")
                }
            }
        }
        switch rules.reuse(request, stored: [stored], now: now) {
        case .serve(let served): try check(served)
        case .refuse: break
        case .forward(let exchange):
            if let served = rules.failed(exchange, stored: [stored], now: now) { try check(served) }
            for status in [answer.status.code, 304, 206] {
                var answer = answer
                answer.status = .init(code: status)
                _ = rules.received(answer, for: exchange, stored: [stored], requestTime: now, responseTime: now)
            }
        }
    }

    // MARK: Metadata

    /// What the metadata of an entry says, used as a hit uses it.
    static func metadata(_ bytes: [UInt8]) throws {
        if let index = VariantIndex(bytes) {
            try require(index.encoded == bytes, "an index of variants changes when it is written")
        }
        if let selecting = SelectingFields(encoded: bytes) {
            try require(selecting.encoded == bytes, "a secondary key changes when it is written")
        }
        if let policy = StoredPolicy(encoded: Array(bytes.prefix(StoredPolicy.encodedByteCount))) {
            _ = ResponseStore.lifetime(of: policy, retention: .seconds(86_400))
        }
        guard let record = StoredRecord(bytes) else { return }
        let written = StoredRecord(record.encoded)
        try require(written?.encoded == record.encoded, "a record changes when it is written")
        let stored = record.response
        _ = ResponseStore.lifetime(of: stored.policy, retention: .seconds(86_400))
        let answer = HTTPResponse(status: .ok, headerFields: stored.head.headerFields)
        for mode in [CachingOptions.gateway, .privateCache] {
            for fields: HTTPFields in [[:], [.range: "bytes=2-4, -1"], [.cacheControl: "max-stale=9, min-fresh=1"]] {
                try reuse(stored, by: request(fields), answer, CacheRules(mode), now: now)
            }
        }
        _ = ResponseSummary(metadata: bytes, key: "http://example.org/a", now: now)
    }
}
