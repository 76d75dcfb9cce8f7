import HTTPTestSupport
import Foundation
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import Locks
import TestSupport
import Testing

/// An origin whose every byte differs from every other: by resource, language, version and position.
final class TruthfulOrigin: Sendable {
    struct Version: Hashable {
        var path: String
        var language: String
        var number: Int

        /// Not more than a few hundred bytes, so that ranges of requests fall on either side of their ends.
        var bytes: [UInt8] { body(seed % 7 == 0 ? 0 : 100 + seed % 300, seed) }
        var name: String { "\(path) \(language) \(number)" }
        var tag: String { "\"\(path.dropFirst())-\(language)-\(number)\"" }
        private var seed: Int { number * 31 + Int(path.utf8.last ?? 0) * 7 + language.utf8.count }
    }

    enum Behaviour: Int, CaseIterable {
        case proper, properAgain, properToo, ignoresRanges, cutsOff, fails, isGone, hidesLength
    }

    static let versionName = HTTPField.Name("X-Version")!
    static let lifetimes = [
        "max-age=60", "max-age=5", "max-age=20, stale-while-revalidate=30", "max-age=5, stale-if-error=600", "no-cache",
        "max-age=30, must-revalidate", "max-age=60, private", "no-store", "s-maxage=30, max-age=5",
    ]

    private struct State {
        var numbers: [String: Int] = [:]
        var behaviour = Behaviour.proper
        var validator = 0
        var lifetime = 0
    }

    private let state = Mutex(State())
    private let clock: TestClock

    init(clock: TestClock) { self.clock = clock }

    func change(_ path: String) { state.withLock { $0.numbers[path, default: 0] += 1 } }

    func behave(_ behaviour: Behaviour, validator: Int, lifetime: Int) {
        state.withLock { state in
            state.behaviour = behaviour
            state.validator = validator
            state.lifetime = lifetime
        }
    }

    func current(_ request: HTTPRequest) -> Version {
        let path = request.path ?? "/"
        let language = path == "/v" ? request.headerFields[.acceptLanguage] ?? "" : ""
        return Version(path: path, language: language, number: state.withLock { $0.numbers[path, default: 0] })
    }

    func answer(_ request: HTTPRequest) throws(TransportError) -> TransportResponse {
        let version = current(request)
        let state = state.withLock { $0 }
        switch state.behaviour {
        case .isGone: throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "nothing listens there")
        case .fails: return .answer(503, [.cacheControl: "no-store"], "busy")
        default: break
        }
        let now = Instant(milliseconds: clock.now().microseconds / 1_000)
        var fields: HTTPFields = [
            .cacheControl: Self.lifetimes[state.lifetime], .date: HTTPDate.format(now),
            Self.versionName: version.name,
        ]
        if version.path == "/v" { fields[.vary] = "Accept-Language" }
        // A change is a day: dates are strong validators then.
        let modified = HTTPDate.format(Instant(seconds: 1_600_000_000 + Int64(version.number) * 86_400))
        switch state.validator {
        case 0: fields[.eTag] = version.tag
        case 1: fields[.eTag] = "W/" + version.tag
        case 2: fields[.lastModified] = modified
        case 3:
            fields[.eTag] = version.tag
            fields[.lastModified] = modified
        default: break
        }
        let bytes = version.bytes
        if let tags = request.headerFields[.ifNoneMatch] {
            if let tag = fields[.eTag], tags.contains(version.tag) {
                return .answer(304, [.eTag: tag, .date: fields[.date] ?? "", Self.versionName: version.name])
            }
        } else if request.headerFields[.ifModifiedSince] == modified, fields[.lastModified] != nil {
            fields[.contentLength] = nil
            return .answer(HTTPResponse(status: .notModified, headerFields: fields), [])
        }
        let condition = request.headerFields[.ifRange]
        if request.method == .head {
            fields[.contentLength] = "\(bytes.count)"
            return .answer(HTTPResponse(status: .ok, headerFields: fields), [])
        }
        if state.behaviour != .ignoresRanges, let text = request.headerFields[.range],
            condition == nil || condition == fields[.eTag] && state.validator != 1
                || condition == fields[.lastModified],
            case .bytes(let field) = RangeField.parse(Array(text.utf8)), field.specifications.count == 1
        {
            guard let range = field.resolved(length: Int64(bytes.count)).first else {
                fields[.contentRange] = "bytes */\(bytes.count)"
                fields[.cacheControl] = "no-store"
                return .answer(HTTPResponse(status: .rangeNotSatisfiable, headerFields: fields), [])
            }
            fields[.contentRange] = ContentRange(range: range, completeLength: Int64(bytes.count)).fieldValue
            let part = Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            return cut(HTTPResponse(status: .partialContent, headerFields: fields), part, state.behaviour)
        }
        return cut(HTTPResponse(status: .ok, headerFields: fields), bytes, state.behaviour)
    }

    private func cut(_ head: HTTPResponse, _ bytes: [UInt8], _ behaviour: Behaviour) -> TransportResponse {
        var head = head
        if behaviour != .hidesLength { head.headerFields[.contentLength] = "\(bytes.count)" }
        guard behaviour == .cutsOff, bytes.count > 1 else { return .answer(head, bytes) }
        return .answer(head, Array(bytes.prefix(bytes.count / 2)), isComplete: false)
    }
}

/// Random requests to an origin that changes and fails: what is served is always what the origin once said, whole.
struct TruthTests {
    private static let requests = [
        "", "", "", "", "Range: bytes=0-49", "Range: bytes=50-119", "Range: bytes=-30", "Range: bytes=90-",
        "Range: bytes=10-19,-5", "Range: bytes=0-9,150-159,20-29", "Range: bytes=900-", "Cache-Control: no-cache",
        "Cache-Control: max-stale=100", "Cache-Control: only-if-cached", "Cache-Control: max-age=0",
        "Cache-Control: no-store", "If-None-Match", "If-Range",
    ]

    @Test(arguments: [CacheMode.shared, .private]) func whatIsServedIsWhatTheOriginSaid(_ mode: CacheMode) async throws
    {
        let seed =
            ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
        print("whatIsServedIsWhatTheOriginSaid \(mode): LARDER_SEED=\(seed)")
        var generator = SeededGenerator(seed: seed)
        var tally: [String: Int] = [:]
        let requests = ProcessInfo.processInfo.environment["LARDER_OPERATIONS"].flatMap(Int.init) ?? 1_200
        for number in 0..<(requests / 60) {
            try await Fixture.run { configuration in
                configuration.caching = mode == .shared ? .gateway : .privateCache
                if number % 2 == 1 { configuration.sliceBytes = 32 }
            } _: { fixture in
                let origin = TruthfulOrigin(clock: fixture.clock)
                fixture.transport.handler = { request throws(TransportError) in try origin.answer(request.head) }
                for round in 0..<60 {
                    try await step(fixture, origin, &generator, &tally, "seed \(seed), round \(round)")
                }
            }
        }
        print(tally.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))
        for kind in ["200 hit", "206 hit", "304 hit", "200 network", "206 network", "200 revalidated", "multipart hit"]
        {
            #expect(tally[kind, default: 0] > 0, "none of '\(kind)': this shows little")
        }
    }

    private func step(
        _ fixture: Fixture, _ origin: TruthfulOrigin, _ generator: inout SeededGenerator, _ tally: inout [String: Int],
        _ place: String
    ) async throws {
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: origin.change(["/a", "/b", "/v"].randomElement(using: &generator)!)
        case 1: fixture.clock.advance(by: .seconds(Int.random(in: 1...40, using: &generator)))
        case 2, 3:
            origin.behave(
                .allCases.randomElement(using: &generator)!, validator: .random(in: 0...4, using: &generator),
                lifetime: .random(in: 0..<TruthfulOrigin.lifetimes.count, using: &generator))
        default: break
        }
        var request = try HTTPCache.request(
            for: "http://example.org" + ["/a", "/a", "/b", "/v"].randomElement(using: &generator)!)
        if Int.random(in: 0..<12, using: &generator) == 0 { request.method = .head }
        request.headerFields[.acceptLanguage] = ["en", "de", "fr"].randomElement(using: &generator)!
        let line = Self.requests.randomElement(using: &generator)!
        let parts = line.split(separator: ":", maxSplits: 1)
        switch line {
        case "If-None-Match": request.headerFields[.ifNoneMatch] = origin.current(request).tag
        case "If-Range":
            request.headerFields[.ifRange] = origin.current(request).tag
            request.headerFields[.range] = "bytes=5-14"
        case "": break
        default: request.headerFields[HTTPField.Name(String(parts[0]))!] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        var options = FetchOptions()
        options.isOffline = Int.random(in: 0..<20, using: &generator) == 0
        let what = "\(place): \(request.method) \(request.path ?? "") \(request.headerFields)"
        do {
            let response = try await fixture.cache.fetch(request, body: nil, options)
            let bytes = try await response.body.bytes()
            let kind = try check(request, response, bytes, origin, what)
            tally["\(kind) \(response.source)", default: 0] += 1
        } catch let error as FetchError {
            tally["error \(error.code)", default: 0] += 1
        } catch let error as TransportError {
            tally["error \(error.code)", default: 0] += 1
        }
    }

    private func check(
        _ request: HTTPRequest, _ response: FetchResponse, _ bytes: [UInt8], _ origin: TruthfulOrigin, _ what: String
    ) throws -> String {
        let status = response.head.status.code
        let fields = response.head.headerFields
        if [503, 504].contains(status) { return "\(status)" }
        let name = try #require(fields[TruthfulOrigin.versionName], "\(what): \(response.head)").split(separator: " ")
        let version = TruthfulOrigin.Version(
            path: String(name[0]), language: name.count == 3 ? String(name[1]) : "", number: Int(name.last!) ?? -1)
        let truth = version.bytes
        let said = "\(what): \(response.head)"
        #expect(version.path == request.path, "\(said)")
        if version.path == "/v" { #expect(version.language == request.headerFields[.acceptLanguage], "\(said)") }
        if let tag = fields[.eTag] { #expect(tag.hasSuffix(version.tag), "\(said)") }
        if request.headerFields[.cacheControl] == "no-cache", response.source != .stale {
            #expect(version == origin.current(request), "\(said)")
        }
        if request.method == .head {
            #expect(bytes.isEmpty, "\(said)")
            return "HEAD"
        }
        switch status {
        case 200:
            let isWhole = bytes == truth
            #expect(isWhole, "\(bytes.count) bytes of \(truth.count), \(said)")
            if let length = fields[.contentLength] { #expect(length == "\(truth.count)", "\(said)") }
            return "200"
        case 206:
            if let value = fields[.contentRange] {
                try checkPart(bytes, value, truth, said)
                return "206"
            }
            let type = try #require(fields[.contentType], "\(said)")
            try checkParts(bytes, String(type.split(separator: "=").last ?? ""), truth, said)
            return "multipart"
        case 304:
            #expect(bytes.isEmpty && request.headerFields[.ifNoneMatch] == version.tag, "\(said)")
            return "304"
        case 416:
            #expect(fields[.contentRange] == "bytes */\(truth.count)", "\(said)")
            return "416"
        default:
            Issue.record("status \(status), \(said)")
            return "other"
        }
    }

    private func checkPart(_ bytes: [UInt8], _ value: String, _ truth: [UInt8], _ said: String) throws {
        let content = try #require(ContentRange(Array(value.utf8)), "\(said)")
        let range = try #require(content.range, "\(said)")
        try #require(content.completeLength == Int64(truth.count) && range.upperBound <= truth.count, "\(said)")
        let isThat = bytes == Array(truth[Int(range.lowerBound)..<Int(range.upperBound)])
        #expect(isThat, "\(bytes.count) bytes, \(said)")
    }

    private func checkParts(_ bytes: [UInt8], _ boundary: String, _ truth: [UInt8], _ said: String) throws {
        var rest = Data(bytes)
        var count = 0
        while let head = rest.range(of: Data("\r\n\r\n".utf8)) {
            let lines = String(decoding: rest[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
            let value = try #require(lines.first { $0.hasPrefix("Content-Range: ") }, "\(said)").dropFirst(15)
            rest = rest[head.upperBound...]
            let end = try #require(rest.range(of: Data("\r\n--\(boundary)".utf8)), "\(said)")
            try checkPart(Array(rest[..<end.lowerBound]), String(value), truth, said)
            rest = rest[end.upperBound...]
            count += 1
        }
        #expect(count >= 2 && rest == Data("--\r\n".utf8), "\(said)")
    }
}
