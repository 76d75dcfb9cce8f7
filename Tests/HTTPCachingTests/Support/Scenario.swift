import HTTPTypes
import Testing

@testable import HTTPCaching

/// A sequence of requests through a ``ModelCache``, in the manner of conformance suites for caches: each step says
/// what the client sends, what the origin would answer, and what must be seen.
struct Scenario: Sendable, CustomTestStringConvertible {
    /// What a step must show.
    enum Expectation: Sendable {
        /// Anything.
        case any
        /// Answered without asking the origin.
        case cached
        /// The origin was asked, without the cache's validators.
        case notCached
        /// The origin was asked with this `If-None-Match`.
        case validatedByTag
        /// The origin was asked with `If-Modified-Since`.
        case validatedByDate
    }

    /// How much a specification wants the behaviour.
    enum Kind: Sendable {
        /// A MUST or MUST NOT.
        case required
        /// Allowed by the specification and good for the user.
        case optimal
    }

    struct Step: Sendable {
        var method = "GET"
        var path = "/resource"
        var requestLines: [String] = []
        var status = 200
        var responseLines: [String] = []
        var body: String?
        var isOriginGone = false
        /// Seconds that pass before the step.
        var after = 0.0
        var expect = Expectation.any
        var expectStatus: Int?
        var expectLines: [String] = []
        var expectMissing: [String] = []
        var expectBody: String?
        var expectSent: [String] = []
    }

    var name: String
    var kind: Kind = .required
    var mode: CacheMode = .shared
    var steps: [Step]

    var testDescription: String { name }

    init(_ name: String, _ kind: Kind = .required, _ mode: CacheMode = .shared, _ steps: Step...) {
        self.name = name
        self.kind = kind
        self.mode = mode
        self.steps = steps
    }

    /// Two requests: the first is answered with `lines`, the second, 3 seconds later, must be as expected.
    static func reuse(
        _ name: String, _ kind: Kind, _ lines: [String], _ expect: Expectation, status: Int = 200, after: Double = 3,
        mode: CacheMode = .shared
    ) -> Scenario {
        Scenario(
            name, kind, mode, Step(status: status, responseLines: lines),
            Step(status: status, responseLines: lines, after: after, expect: expect))
    }

    /// Runs the steps and reports what does not hold.
    func run(_ options: CachingOptions? = nil) {
        var options = options ?? .gateway
        options.mode = mode
        var cache = ModelCache(options)
        for (number, step) in steps.enumerated() {
            cache.advance(step.after)
            let now = cache.now
            var request = request(step.method, step.path)
            request.headerFields = fields(step.requestLines, now: now)
            let hasContent = !["GET", "HEAD", "OPTIONS"].contains(step.method)
            let outcome = cache.handle(request, hasContent: hasContent) { sent in
                step.isOriginGone ? nil : step.originAnswer(to: sent, now: now)
            }
            check(step, outcome, now: now, "\(name), step \(number + 1)")
        }
    }

    private func check(_ step: Step, _ outcome: ModelCache.Outcome, now: Instant, _ place: String) {
        let sent = outcome.sent.first?.headerFields
        let note = "\(place): \(outcome.status) \(outcome.fields) sent \(outcome.sent)"
        switch step.expect {
        case .any: break
        case .cached: #expect(outcome.isCached, "\(note)")
        case .notCached: #expect(!outcome.isCached && sent != nil, "\(note)")
        case .validatedByTag: #expect(sent?.contains(.ifNoneMatch) == true, "\(note)")
        case .validatedByDate: #expect(sent?.contains(.ifModifiedSince) == true, "\(note)")
        }
        if let status = step.expectStatus { #expect(outcome.status == status, "\(note)") }
        if let body = step.expectBody { #expect(outcome.text == body, "\(note)") }
        for field in fields(step.expectLines, now: now) {
            #expect(outcome.fields[values: field.name].contains(field.value), "\(place): \(field) in \(outcome.fields)")
        }
        for name in step.expectMissing {
            #expect(!outcome.fields.contains(HTTPField.Name(name)!), "\(place): no \(name) in \(outcome.fields)")
        }
        for field in fields(step.expectSent, now: now) {
            #expect(
                sent?[values: field.name].contains(field.value) == true,
                "\(place): sent \(field), not \(String(describing: sent))")
        }
    }
}

extension Scenario.Step {
    /// The scripted answer; 304 when the request's validators are those of the script.
    func originAnswer(to request: HTTPRequest, now: Instant) -> ModelCache.OriginAnswer {
        var head = HTTPResponse(status: .init(code: status), headerFields: fields(responseLines, now: now))
        let tags = request.headerFields[values: .ifNoneMatch].joined(separator: ",")
        let isSameTag = head.headerFields[.eTag].map { tags.contains($0) } ?? false
        let isSameDate =
            head.headerFields[.lastModified] != nil
            && head.headerFields[.lastModified] == request.headerFields[.ifModifiedSince]
        if status == 200, isSameTag || (tags.isEmpty && isSameDate) {
            head.status = .notModified
            return ModelCache.OriginAnswer(head: head, body: [])
        }
        return ModelCache.OriginAnswer(head: head, body: Array((method == "HEAD" ? "" : body ?? "body").utf8))
    }
}
